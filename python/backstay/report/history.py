"""A job's history out of its events: versions, restarts, failures. Times in s since the first event."""

import dataclasses
from typing import NamedTuple


class Rank(NamedTuple):
    """One rank's part of a capture."""

    rank: int
    bytes: int
    seconds: float


@dataclasses.dataclass
class Version:
    """One capture of a version. None: it did not come to that."""

    number: int
    run: str
    begin_s: float
    captured_s: float | None = None
    local_s: float | None = None
    protected_s: float | None = None
    durable_s: float | None = None
    bytes: int = 0
    blocked_s: float | None = None  # the longest that a rank waited
    writing_s: float | None = None  # captured to local
    ranks: list[Rank] = dataclasses.field(default_factory=list)


class Restart(NamedTuple):
    at_s: float
    run: str
    version: int
    source: str
    bytes: int
    seconds: float


class Failure(NamedTuple):
    """A run that ended by losing ranks; `redone_s` is the work that the next restart did not bring back."""

    at_s: float
    run: str
    ranks: list[int]
    restart: Restart | None
    redone_s: float | None


class Mark(NamedTuple):
    """Something else that happened to a version."""

    at_s: float
    version: int
    kind: str
    why: str


class Run(NamedTuple):
    """From the first event of a run to its last one."""

    begin_s: float
    end_s: float


@dataclasses.dataclass
class History:
    job: str
    begin_ns: int
    end_s: float
    versions: list[Version] = dataclasses.field(default_factory=list)
    restarts: list[Restart] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    marks: list[Mark] = dataclasses.field(default_factory=list)
    runs: list[Run] = dataclasses.field(default_factory=list)

    @property
    def captured(self) -> list[Version]:
        return [one for one in self.versions if one.captured_s is not None]

    def running_s(self, at_s: float) -> float:
        """How long the job had been running by then: pauses between its runs do not count."""
        return sum(max(0.0, min(at_s, one.end_s) - one.begin_s) for one in self.runs)

    @property
    def observed_s(self) -> float:
        return self.running_s(self.end_s)


LEVELS = ("local", "protected", "durable")
LATER = ("removed", "set_aside", "skipped")  # also by tools, long after the run
MARKS = ("capture_failed", "write_failed", "removed", "set_aside", "skipped", "restart_failed")


def _capture(made: History, open_versions: dict, event: dict, at: float) -> None:
    version = open_versions.get(event["version"])
    if version is None or version.captured_s is not None:
        version = Version(int(event["version"]), event["run"], max(0.0, at - event["seconds"]))
        made.versions.append(version)
        open_versions[version.number] = version
    version.captured_s, version.bytes = at, event["bytes"]
    version.ranks = [Rank(int(r["rank"]), r["bytes"], max(0, r["end_ns"] - r["begin_ns"]) / 1e9) for r in event["ranks"]]
    version.blocked_s = max((one.seconds for one in version.ranks), default=event["seconds"])


def _failures(made: History, lost: dict) -> list[Failure]:
    found = []
    for run, (at, ranks) in lost.items():
        restart = next((one for one in made.restarts if one.at_s > at), None)
        cut = None if restart is None else next(
            (v for v in reversed(made.captured) if v.number == restart.version and v.captured_s <= at), None)  # fmt: skip
        redone = None if cut is None else made.running_s(at) - made.running_s(cut.begin_s)
        found.append(Failure(at, run, sorted(set(ranks)), restart, redone))
    return found


def _runs(events: list[dict], begin_ns: int) -> list[Run]:
    """What happens to a version later on does not belong to the run that made it."""
    ends: dict[str, Run] = {}
    for event in events:
        run, at = event.get("run"), (event["t_ns"] - begin_ns) / 1e9
        if isinstance(run, str) and event["event"] not in LATER:
            ends[run] = Run(ends[run].begin_s if run in ends else at, at)
    return list(ends.values())


def build(job: str, events: list[dict]) -> History:
    """The history of events in order of time, of which there is at least one."""
    begin = events[0]["t_ns"]
    made = History(job, begin, (events[-1]["t_ns"] - begin) / 1e9, runs=_runs(events, begin))
    open_versions, lost = {}, {}
    for event in events:
        at, kind = (event["t_ns"] - begin) / 1e9, event["event"]
        if kind == "rank_left" and event["lost"]:
            lost.setdefault(event["run"], (at, []))[1].append(int(event["rank"]))
        elif kind == "capture_begin":
            open_versions[event["version"]] = Version(int(event["version"]), event["run"], at)
            made.versions.append(open_versions[event["version"]])
        elif kind == "captured":
            _capture(made, open_versions, event, at)
        elif kind in LEVELS and event["version"] in open_versions:
            setattr(open_versions[event["version"]], f"{kind}_s", at)
            if kind == "local":
                open_versions[event["version"]].writing_s = event["seconds"]
        elif kind == "restored":
            made.restarts.append(
                Restart(at, event["run"], int(event["version"]), event["from"], event["bytes"], event["seconds"]))  # fmt: skip
        elif kind in MARKS:
            made.marks.append(Mark(at, int(event["version"]), kind, str(event.get("why", ""))))
    made.failures = _failures(made, lost)
    return made
