"""`backstay plan multilevel`: best intervals for several levels at once."""

from typing import Annotated

import typer

from ...plan import multilevel
from ...plan.check import PlanError
from . import output
from .output import AsJson, percent, seconds

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan multilevel --level local:5:10:20000 --level protected:30:60:200000 --level "
    "durable:300:600:2e6\n"
    "  backstay plan multilevel --level local:5:10:20000 --level durable:300:600:2e6 --json\n\n"
    f"{output.EXIT_CODES}"
)


def parse_level(text: str) -> multilevel.Level:
    """NAME:COST:RESTART:MTTI."""
    parts = text.split(":")
    try:
        if len(parts) != 4 or not parts[0]:
            raise ValueError
        return multilevel.Level(parts[0], *map(float, parts[1:]))
    except ValueError:
        raise PlanError("levels",
                        f"must be NAME:COST:RESTART:MTTI with times in s, not {text!r}") from None


def command(
    levels: Annotated[
        list[str],
        typer.Option(
            "--level", metavar="NAME:COST:RESTART:MTTI",
            help="Weakest first; MTTI of failures that need this level; s"
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """How often to save at each level.

    First-order optimum of nested checkpoints (Benoit et al., IEEE Transactions on Computers 66
    (2017) 1212). COST is what saving at the level adds, RESTART the time to restart from it, MTTI
    the mean time between failures that need it.
    """
    known = multilevel.checked([parse_level(one) for one in levels])
    best = multilevel.pattern(known)
    alone = multilevel.pattern(multilevel.merged(known, (len(known) - 1,)))
    used = {
        one.name: (interval, every)
        for one, interval, every in zip(best.levels, best.intervals_s, best.every, strict=True)
    }
    rows = [
        {"name": one.name, "used": one.name in used, "interval_s": used.get(one.name, (None,))[0],
         "every": used.get(one.name, (None, None))[1], "free_interval_s": free}
        for one, free in zip(known, multilevel.free_intervals_s(known), strict=True)
    ]  # fmt: skip
    result = {
        "levels": rows,
        "overhead_fraction": best.overhead_fraction,
        "restart_fraction": best.restart_fraction,
        "efficiency": best.efficiency,
        "strongest_alone": {"interval_s": alone.base_interval_s, "efficiency": alone.efficiency},
    }
    lines = [(row["name"],
              f"every {seconds(row['interval_s'])}" if row["used"] else "does not pay") for row
              in rows]
    lines += [
        ("lost to checkpoints and rework", f"{percent(best.overhead_fraction)} of the computing"),
        ("lost to restarts", f"{percent(best.restart_fraction)} of the computing"),
        ("efficiency", percent(best.efficiency)),
        (f"with {known[-1].name} alone, every {output.number(alone.base_interval_s)} s",
         percent(alone.efficiency)),
    ]
    output.show(result, lines, as_json, notes(best))


def notes(best) -> list[str]:
    if best.overhead_fraction + best.restart_fraction > 0.3:
        return ["first order: with so much lost the true overhead is larger; simulate before "
                "relying on it"]
    return []
