"""The sources of the numbers of `backstay plan advise`: options, a job's own versions, the probe, a
failure log.
"""

import pathlib
from typing import NamedTuple, Optional

import numpy as np

from ...plan.check import PlanError
from ...plan.levels import Failures
from ...plan.words import counted
from .. import measured

ASSUMED = "assumed: 96 % of the failures take one node, 3 % two, 1 % eight; --trace reads a log"


class Known(NamedTuple):
    """What a source measured: by the names of the command's parameters; `notes` say where it is
    from.
    """

    values: dict[str, float]
    notes: list[str]


def of_probe(path: Optional[str]) -> Known:
    """Bandwidths of `backstay probe`; none if it was not asked for and never ran. PlanError if it
    is not its result.
    """
    file = pathlib.Path(path) if path else measured.probe_path()
    if not path and not file.is_file():
        return Known({}, [])
    try:
        return Known(measured.probe_rates(file), [])
    except ValueError:
        raise PlanError("probe",
                        f"{file}: not a result of `backstay probe`; run it again") from None


def of_job(job: Optional[str], directory: Optional[str]) -> Known:
    """Medians over the versions of a job's event log: what a node saves, how fast it is captured
    and written.
    """
    if job is None:
        return Known({}, [])
    made, _ = measured.job_history("backstay plan advise", job, directory)
    captured = [one for one in made.captured if one.bytes > 0]
    rates = {
        "saved_bytes": [one.bytes for one in captured],
        "copy_bytes_per_s": [one.bytes / one.blocked_s for one in captured if one.blocked_s],
        "disk_bytes_per_s": [one.bytes / one.disk_s for one in captured if one.disk_s],
    }
    values = {name: float(np.median(found)) for name, found in rates.items() if found}
    note = f"measured by {counted(len(captured), 'version')} of job {job}: {', '.join(values)}"
    if made.failures:
        values["mtti_s"] = made.observed_s / len(made.failures)
        note += f"; it lost ranks {counted(len(made.failures), 'time')} in {made.observed_s:.0f} s of running"
    return Known(values, [note])


def of_trace(trace: str, system: Optional[str], window_s: float, software_share: float,
             nodes: int) -> tuple[Failures, list[str], dict]:
    """Mean time to interrupt, Weibull's shape and sizes of incidents of a failure log; its rows."""
    from ...plan.simulate.failures import SHAPES
    from ...plan.traces import read, statistics

    log = read.log(trace, system)
    found = statistics.incidents(log, window_s)
    gaps = statistics.gaps_s(found)
    law = statistics.weibull(gaps)
    alike = [] if law else [f"no Weibull shape of the log: {statistics.ALIKE}; {SHAPES[1]:g} is "
                            f"taken"]
    shape = min(max(law.shape, SHAPES[0]), SHAPES[1]) if law else SHAPES[1]
    sizes = {int(size): float((found.nodes == size).mean()) for size
             in sorted(set(found.nodes.tolist()))}
    named = len(log.names)
    scaled = [] if named == nodes else [f"the log names {counted(named, 'node')}: its mean time to "
                                        f"interrupt is taken times {named}/{nodes}; --mtti sets it"]
    mtti = float(gaps.mean()) * (named / max(nodes, 1))
    return Failures(mtti, shape, sizes, software_share), [*log.notes, *scaled, *alike], log.rows


def failures_of(trace, system, window_s, mtti_s, software_share, job: Known,
                nodes: int) -> tuple[Failures, list[str], dict | None]:
    """The failures of the log (with its rows), of --mtti, or as the job saw them."""
    if trace is not None and mtti_s is not None:
        raise PlanError("mtti_s", "and --trace cannot both be given")
    if trace is not None:
        return of_trace(trace, system, window_s, software_share, nodes)
    if system is not None:
        raise PlanError("system", "belongs to --trace")
    mtti = mtti_s if mtti_s is not None else job.values.get("mtti_s")
    if mtti is None:
        raise PlanError("mtti_s",
                        "or --trace must be given"
                        + (", as the job saw no failure" if job.notes else ", one of them"))
    if mtti_s is not None:
        return Failures(mtti, software_share=software_share), [ASSUMED], None
    few = f"the mean time to interrupt is the job's own, of one node, divided by {nodes} nodes: few failures say little about it; --mtti sets it"
    mtti /= max(nodes, 1)
    return Failures(mtti, software_share=software_share), [ASSUMED, few], None


def value(name: str, given: Optional[float], *sources: Known) -> float:
    """As given, or of the first source that knows it. PlanError if none does."""
    for one in ({name: given} if given is not None else {}, *(source.values for source in sources)):
        if name in one:
            return one[name]
    hint = {"saved_bytes": ", or --job"}.get(name,
                                             ", or run `backstay probe`" if name in measured.PROBED
                                             else "")
    raise PlanError(name, f"must be given{hint}")
