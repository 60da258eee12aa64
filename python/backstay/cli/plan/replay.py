"""`backstay plan replay`: a machine's failure log, and a job played through against it."""

from typing import Annotated, Optional

import typer

from ...plan.words import counted, grouped
from . import output
from .output import AsJson, number, percent, seconds

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan replay --trace failures.csv --cost 300 --restart 600\n"
    "  backstay plan replay --trace LA-UR-05-7318-failure-data-1996-2005.csv.xz --system 20 --cost "
    "300 --restart 600 --json\n"
    "  sacctmgr show event --parsable2 > events.txt; backstay plan replay --trace events.txt "
    "--cost 60\n\n"
    f"{output.EXIT_CODES}"
)
NAMES = {"daly": "Daly's interval", "best": "best in hindsight",
         "four_times_daly": "four times Daly's"}
CLASSES = {"1": "1 node", "2": "2 nodes", "3-16": "3 to 16 nodes", "more": "more nodes"}

Trace = Annotated[str,
                  typer.Option("--trace", metavar="FILE",
                               help="Failure log; the format is found out")]
System = Annotated[
    Optional[str],
    typer.Option("--system", metavar="N", help="Which one, in a log of several systems")
]
Window = Annotated[
    float, typer.Option("--window", metavar="S", help="Failures within it are one incident, s")
]  # fmt: skip


def command(
    trace: Trace,
    cost_s: Annotated[float,
                      typer.Option("--cost", metavar="S",
                                   help="How long one checkpoint stops the job, s")],
    restart_s: Annotated[
        float, typer.Option("--restart", metavar="S", help="From a failure to computing again, s")
    ] = 0.0,
    system: System = None,
    window_s: Window = 60.0,
    as_json: AsJson = False,
) -> None:
    """What real failures would have cost a job.

    A job on all nodes runs from the log's first incident to its last, saving at Daly's interval, at
    the best fixed interval in hindsight, and four times too seldom. Logs: LANL CSV, InfiniteHBD
    JSON, Slurm, time,node.
    """
    from ...plan.simulate import replay
    from ...plan.traces import read, statistics

    log = read.log(trace, system)
    found, lost = replay.of_log(log, window_s, cost_s, restart_s)
    gaps = statistics.gaps_s(found)
    law, shares = statistics.weibull(gaps), statistics.shares(found)
    result = {
        "trace": str(trace), "format": log.format, "system": system, "rows": log.rows,
        "failures": len(log.times_s),
        "nodes": len(log.names), "incidents": len(found.times_s), "window_s": window_s,
        "span_s": found.times_s[-1], "mtti_s": gaps.mean(),
        "coefficient_of_variation": statistics.coefficient_of_variation(gaps),
        "weibull_shape": law and law.shape, "weibull_shape_error": law and law.shape_error,
        "weibull_scale_s": law and law.scale_s, "weibull_distance": law and law.distance,
        "exponential_distance": statistics.exponential_distance(gaps),
        "incident_share": shares, "cost_s": cost_s, "restart_s": restart_s,
        "interval_s": lost.interval_s, "lost_fraction": lost.lost_fraction,
    }  # fmt: skip
    not_fitted = [] if law else [f"no Weibull shape: {statistics.ALIKE}"]
    output.show(result, lines(result), as_json, [*log.notes, *not_fitted])


def weibull(result) -> str:
    exponential = number(result["exponential_distance"], 2)
    if result["weibull_shape"] is None:
        return f"cannot be estimated (exponential: distance {exponential})"
    fitted = f"{number(result['weibull_shape'], 3)} ± {number(result['weibull_shape_error'], 2)}"
    return f"{fitted}, distance {number(result['weibull_distance'], 2)} (exponential: {exponential})"


def lines(result) -> list[tuple[str, str]]:
    rows = [
        ("failures",
         f"{grouped(result['failures'])} of {counted(result['nodes'], 'node')} ({result['format']})"),
        ("incidents", f"{grouped(result['incidents'])} in {seconds(result['span_s'])}"),
        ("mean time to interrupt", seconds(result["mtti_s"])),
        ("coefficient of variation",
         f"{number(result['coefficient_of_variation'], 3)} (at random: 1)"),
        ("Weibull shape", weibull(result)),
    ]  # fmt: skip
    rows += [(f"  of {CLASSES[name]}", percent(share)) for name,
             share in result["incident_share"].items()]
    for name, label in NAMES.items():
        rows.append((f"{label}, {number(result['interval_s'][name])} s",
                     f"{percent(result['lost_fraction'][name])} lost"))
    return rows
