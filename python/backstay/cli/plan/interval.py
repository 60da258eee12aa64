"""`backstay plan interval`: how often to save."""

import math
from typing import Annotated, Optional

import typer

from ...plan import interval as formulas
from ...plan import wall_clock
from ...plan.check import PlanError, positive, whole
from . import output
from .output import AsJson, percent, seconds

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan interval --cost 300 --mtti 86400 --restart 600\n"
    "  backstay plan interval --cost 12 --node-mtti 157788000 --nodes 4096 --json\n"
    "  backstay plan interval --cost 300 --mtti 86400 --interval 3600    (what does saving hourly "
    "cost?)\n\n"
    f"{output.EXIT_CODES}"
)


def job_mtti(mtti_s, node_mtti_s, nodes) -> float:
    if (mtti_s is None) == (node_mtti_s is None):
        raise PlanError("mtti_s", "or --node-mtti with --nodes must be given, one of them")
    if mtti_s is not None:
        if nodes is not None:
            raise PlanError("nodes", "belongs to --node-mtti; --mtti is that of the whole job")
        return float(positive("mtti_s", mtti_s))
    if nodes is None:
        raise PlanError("nodes", "must be given with --node-mtti")
    return float(positive("node_mtti_s", node_mtti_s)) / whole("nodes", nodes)


def command(
    cost_s: Annotated[float,
                      typer.Option("--cost", metavar="S",
                                   help="How long one checkpoint stops the job, s")],
    mtti_s: Annotated[
        Optional[float],
        typer.Option("--mtti", metavar="S", help="Mean time to interrupt of the job, s")
    ] = None,
    node_mtti_s: Annotated[
        Optional[float], typer.Option("--node-mtti", metavar="S", help="The same of one node, s")
    ] = None,
    nodes: Annotated[Optional[int],
                     typer.Option("--nodes", parser=output.whole_number, metavar="N",
                                  help="Nodes of the job")] = None,
    restart_s: Annotated[
        float, typer.Option("--restart", metavar="S", help="From a failure to computing again, s")
    ] = 0.0,
    solve_s: Annotated[
        float, typer.Option("--solve", metavar="S", help="Computing alone, s", show_default="30 days")
    ] = 2_592_000.0,
    interval_s: Annotated[
        Optional[float],
        typer.Option("--interval", metavar="S", help="Expect the time for this one, s")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How often to save, and what it costs.

    Young, Daly and the exact minimum for exponential failures (paper 000, eqs. 3.1 and 3.2), and
    where the expected time goes. Without --interval the exact one is taken.
    """
    mtti = job_mtti(mtti_s, node_mtti_s, nodes)
    if interval_s is not None and interval_s > solve_s:
        raise PlanError("interval_s",
                        f"must not be longer than --solve ({solve_s:.12g} s), not {interval_s:.12g}")
    best = float(wall_clock.exact_s(cost_s, mtti, solve_s))
    used = best if interval_s is None else interval_s
    expected = wall_clock.split(used, cost_s, mtti, solve_s, restart_s)
    if not math.isfinite(expected.wall_clock_s):
        cause, value = max(("cost_s", cost_s), ("restart_s", restart_s), key=lambda one: one[1])
        raise PlanError(
            cause, f"of {value:g} s against a mean time to interrupt of {mtti:g} s: the job would "
                   f"never end"
        )
    at_best = wall_clock.wall_clock_s(best, cost_s, mtti, solve_s, restart_s)
    result = {
        "young_s": formulas.young_s(cost_s, mtti),
        "daly_first_order_s": formulas.daly_first_order_s(cost_s, mtti),
        "daly_s": formulas.daly_s(cost_s, mtti),
        "long_job_s": formulas.long_job_s(cost_s, mtti),
        "exact_s": best,
        "mtti_s": mtti,
        "expected": {"interval_s": used, **expected._asdict(), "efficiency": expected.efficiency},
        "wall_clock_over_best": expected.wall_clock_s / at_best,
    }
    lines = [
        ("Young", seconds(result["young_s"])),
        ("Daly, first order", seconds(result["daly_first_order_s"])),
        ("Daly, higher order", seconds(result["daly_s"])),
        ("exact minimum", seconds(best)),
        (f"expected, saving every {output.number(used)} s", seconds(expected.wall_clock_s)),
        *((f"  {part}", percent(getattr(expected, f"{part}_s") / expected.wall_clock_s))
          for part in ("solve", "checkpoint", "rework", "restart")),
        ("  failures", output.number(expected.failures)),
    ]  # fmt: skip
    output.show(result, lines, as_json, notes(cost_s, mtti, solve_s, best))


def notes(cost_s, mtti, solve_s, best) -> list[str]:
    found = []
    if cost_s >= 2 * mtti:
        found.append(
            "--cost is at least twice the mean time to interrupt: Daly's other branch, τ = M; the "
            "job hardly gets on"
        )
    if best >= solve_s * (1 - 1e-6):
        found.append("the job is shorter than the best interval: no checkpoint pays")
    return found
