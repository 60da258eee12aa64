"""`backstay plan strategy`: who writes."""

from typing import Annotated, Optional

import typer

from ...plan import strategy
from ...plan.check import PlanError, fraction, positive
from ...plan.words import grouped
from . import output
from .output import AsJson, seconds, sized

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan strategy --np 65536 --ng 1024 --json\n"
    "  backstay plan strategy --np 4096 --ng 64 --size 2e12 --writer-bandwidth 15e9 --blocked 0.1\n"
    "  backstay plan strategy --np 16384 --ng 256 --ratio-before 1000 --ratio-after 20 --steps "
    "20\n\n"
    f"{output.EXIT_CODES}"
)


# § V-B: file per process, writer groups.
PAPER_BEFORE, PAPER_AFTER, PAPER_CASE = 1000.0, 20.0, (65536, 1024)
PAPER_GROUP = 16  # Fig. 8: np:ng of 64, 32 and 16


def times(number: float) -> str:
    return f"{output.number(number)} ×"


def command(
    processes: Annotated[int,
                         typer.Option("--np", parser=output.whole_number, metavar="N",
                                      help="Processes")],
    writers: Annotated[int,
                       typer.Option("--ng", parser=output.whole_number, metavar="N",
                                    help="Writers among them, one a group")],
    file_bytes: Annotated[float,
                          typer.Option("--size", metavar="BYTES",
                                       help="Data of one checkpoint")] = 156e9,
    collective_bytes_per_s: Annotated[
        float, typer.Option("--collective-bandwidth", metavar="B/S", help="Of a collective write")
    ] = 13e9,
    writer_bytes_per_s: Annotated[
        float, typer.Option("--writer-bandwidth", metavar="B/S", help="Of the writers together")
    ] = 13e9,
    perceived_bytes_per_s: Annotated[
        float, typer.Option("--perceived-bandwidth", metavar="B/S", help="At which the others hand "
                                                                         "over")
    ] = 1091e12,
    blocked_fraction: Annotated[
        Optional[float],
        typer.Option("--blocked", metavar="SHARE",
                     help="λ: share of the writing for which the others wait"),
    ] = None,
    between_s: Annotated[
        Optional[float],
        typer.Option("--between", metavar="S", help="Computing between checkpoints; gives λ")
    ] = None,
    ratio_before: Annotated[
        Optional[float],
        typer.Option("--ratio-before", metavar="R", help="Checkpoint / step time now",
                     show_default="1000, paper 004's"),
    ] = None,
    ratio_after: Annotated[
        Optional[float],
        typer.Option("--ratio-after", metavar="R", help="The same with writers",
                     show_default="20, paper 004's"),
    ] = None,
    steps: Annotated[float,
                     typer.Option("--steps", metavar="N", help="Steps between checkpoints")] = 20.0,
    as_json: AsJson = False,
) -> None:
    """All processes write, or writer groups: which is faster.

    Speed-up of writer groups over collective writing and of the production run (paper 004, eqs. 1
    to 7). The defaults are the paper's 64K case; eq. 1 lives by measured ratios, not by --np and
    --ng.
    """
    blocked = blocked_of(file_bytes, writer_bytes_per_s, blocked_fraction, between_s)
    writer_s = float(positive("file_bytes", file_bytes) / positive("writer_bytes_per_s",
        writer_bytes_per_s))
    handing_s = float(file_bytes / positive("perceived_bytes_per_s", perceived_bytes_per_s))
    rates = (collective_bytes_per_s, writer_bytes_per_s)
    result = {
        "processes": processes,
        "writers": writers,
        "blocked_fraction": blocked,
        "collective_wait_s": strategy.collective_blocked_s(1, file_bytes, collective_bytes_per_s),
        "writer_s": writer_s,
        "worker_wait_s": handing_s + blocked * writer_s,
        "speedup": strategy.speedup(processes, writers, file_bytes, *rates, perceived_bytes_per_s,
                                    blocked),
        "speedup_approximate": strategy.speedup_approximate(processes, writers, *rates, blocked),
        "speedup_unblocked": strategy.speedup_unblocked(processes, writers, *rates),
        "production_improvement": improvement_of(processes, writers, ratio_before, ratio_after,
                                                 steps),
    }
    lines = [
        ("collective: each process waits", seconds(result["collective_wait_s"])),
        ("groups: the one writer writes" if writers == 1
         else f"groups: each of {grouped(writers)} writers writes",
         seconds(result["writer_s"])),
        ("groups: each other process waits",
         f"{result['worker_wait_s']:.4g} s, seeing {sized(perceived_bytes_per_s)}/s"
         if writers < processes else "there is none"),
        ("speed-up, eq. 5", times(result["speedup"])),
        ("speed-up, eq. 6", times(result["speedup_approximate"])),
        ("limit without waiting, eq. 7", times(result["speedup_unblocked"])),
        ("production run sooner, eq. 1",
         "not known" if (sooner := result["production_improvement"]) is None else times(sooner)),
    ]  # fmt: skip
    output.show(result, lines, as_json,
                notes(processes, writers, ratio_before is None or ratio_after is None))


def as_in_paper(processes: int, writers: int) -> bool:
    """Whether groups are at least as large as the smallest whose ratios paper 004 measured."""
    return processes >= PAPER_GROUP * writers


def improvement_of(processes, writers, ratio_before, ratio_after, steps) -> Optional[float]:
    """Eq. 1, which is independent of n_p and n_g: its ratios are measured. None if the paper's do
    not fit.
    """
    assumed = ratio_before is None or ratio_after is None
    before = PAPER_BEFORE if ratio_before is None else ratio_before
    after = PAPER_AFTER if ratio_after is None else ratio_after
    found = float(strategy.production_improvement(before, after, steps))
    return None if assumed and not as_in_paper(processes, writers) else found


def notes(processes: int, writers: int, assumed: bool) -> list[str]:
    found = []
    if processes == writers:
        found.append("no process is left to compute while others write: eqs. 5 to 7 give the ratio "
                     "of the two bandwidths")
    elif processes < 2 * writers:
        found.append("more than half of the processes write: most writers write for no other "
                     "process, and wait themselves")
    if assumed and not as_in_paper(processes, writers):
        found.append(f"eq. 1 needs --ratio-before and --ratio-after measured with such groups: "
                     f"paper 004's are of {PAPER_GROUP} processes or more a writer")
    elif assumed and (processes, writers) != PAPER_CASE:
        found.append("eq. 1 with the ratios of paper 004's machine; --ratio-before and "
                     "--ratio-after set yours")
    return found


def blocked_of(file_bytes, writer_bytes_per_s, blocked_fraction, between_s) -> float:
    """λ as given, or from the time between checkpoints, or 0."""
    if between_s is None:
        return 0.0 if blocked_fraction is None else float(fraction("blocked_fraction",
            blocked_fraction))
    if blocked_fraction is not None:
        raise PlanError("between_s", "and --blocked cannot both be given")
    return float(strategy.blocked_fraction_from_steps(file_bytes, writer_bytes_per_s, between_s))
