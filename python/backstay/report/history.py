"""A job's history out of its events: versions, restarts, failures, over all nodes. Times in s since
the first event.
"""

import dataclasses
from typing import NamedTuple

from . import by_ranks
from .clocks import Clock, compare, moved
from .membership import Loss, losses
from .nodes import Names, natural


class Rank(NamedTuple):
    """One rank's part of a capture."""

    rank: int
    bytes: int
    seconds: float  # that it waited
    node: str = ""
    copied_s: float = 0.0  # from begin to end: longer, where its snapshot was copied
    forked: bool = False
    role: str = ""  # of those that write versions themselves: writer, worker
    begin_ns: int = 0
    file_s: float = 0.0  # until its file was closed, where the program may have run on
    hand_over_s: float = 0.0
    wait_s: float = 0.0

    @property
    def io_s(self) -> float:
        return max(self.seconds, self.file_s)


@dataclasses.dataclass
class Part:
    """One node's part of a version, by its own clock. None: it did not come to that, or its log
    does not say.
    """

    begin_s: float
    captured_s: float | None = None
    written_s: float | None = None  # on its own disk
    local_s: float | None = None  # announced: all have it; protected and durable too
    protected_s: float | None = None
    durable_s: float | None = None
    bytes: int = 0
    blocked_s: float | None = None  # the longest that a rank waited
    writing_s: float | None = None  # captured to written
    waiting_s: float | None = None  # captured to local
    # First chunk handed to its disk to written; None: the log is of an older agent.
    disk_s: float | None = None
    all_disks_s: float | None = None  # the same to local
    ranks: list[Rank] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Version:
    """One capture of a version, the last node counts. None: it did not come to that."""

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
    disk_s: float | None = None  # first chunk handed to a disk to local; None: the logs do not say
    ranks: list[Rank] = dataclasses.field(default_factory=list)
    parts: dict[str, Part] = dataclasses.field(default_factory=dict)  # by node


@dataclasses.dataclass
class Restart:
    """A restart of all nodes: the last one's time, the longest, the farthest place."""

    at_s: float
    run: str
    version: int
    source: str
    bytes: int
    seconds: float
    nodes: list[str] = dataclasses.field(default_factory=list)


class Stand(NamedTuple):
    """How long the program stood still after a failure, until its first computing: the parts follow
    each other. Of a `backstay run` that started it again by itself.
    """

    at_s: float
    noticing_s: float  # until `backstay run` saw the launcher's end
    launching_s: float  # until the first rank connected
    init_s: float  # until the ranks asked for their data
    reading_s: float  # until they had it

    @property
    def end_s(self) -> float:
        return self.at_s + self.seconds

    @property
    def seconds(self) -> float:
        return sum(self[1:])


class Failure(NamedTuple):
    """A run that ended by losing ranks; `redone_s` is the work that the next restart did not bring
    back.
    """

    at_s: float
    run: str
    ranks: list[int]  # all that were lost
    # Of these the first, what left within TOGETHER_S of it, and those of lost nodes: MPI ends the
    # others.
    died: list[int]
    restart: Restart | None
    redone_s: float | None
    node: str  # of the rank that was lost first
    lost: list[str]  # nodes that had not come back


class Refusal(NamedTuple):
    """A run whose ranks could not use the version that they were to restart from: its end is no
    failure.
    """

    at_s: float
    run: str
    why: str


@dataclasses.dataclass
class Mark:
    """Something else that happened to a version, on one node or on several."""

    at_s: float
    version: int
    kind: str
    why: str
    run: str = ""
    place: str = ""  # durable: it is that copy
    nodes: list[str] = dataclasses.field(default_factory=list)
    of: set[str] = dataclasses.field(default_factory=set)  # whose part of it
    bytes: int = 0
    seconds: float = 0.0  # the longest


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
    stands: list[Stand] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    refusals: list[Refusal] = dataclasses.field(default_factory=list)
    marks: list[Mark] = dataclasses.field(default_factory=list)
    runs: list[Run] = dataclasses.field(default_factory=list)
    nodes: list[str] = dataclasses.field(default_factory=list)  # whose log there is
    without_log: list[str] = dataclasses.field(default_factory=list)  # of those that took part
    losses: list[Loss] = dataclasses.field(default_factory=list)
    clocks: list[Clock] = dataclasses.field(default_factory=list)

    @property
    def captured(self) -> list[Version]:
        return [one for one in self.versions if one.captured_s is not None]

    @property
    def by_ranks(self) -> bool:  # without an agent
        return any(one.role for one in self.captured[-1].ranks)

    def running_s(self, at_s: float) -> float:
        """How long the job had been running by then: pauses between its runs do not count."""
        return sum(max(0.0, min(at_s, one.end_s) - one.begin_s) for one in self.runs)

    @property
    def lost_nodes(self) -> list[Loss]:
        """Without those whose agent ended once the run had."""
        return [one for one in self.losses if not one.after_end]

    @property
    def observed_s(self) -> float:
        """The job's time: a program that stands still for a restart counts."""
        return self.running_s(self.end_s) + sum(
            one.seconds - (self.running_s(one.end_s) - self.running_s(one.at_s))
            for one in self.stands)

    @property
    def stood(self) -> list[Stand | Restart]:
        """Also restarts that no failure came before, as far as the agents see them."""
        alone = [one for one in self.restarts
                 if not any(stand.at_s < one.at_s <= stand.end_s for stand in self.stands)]
        return [*self.stands, *alone]

    @property
    def restarting_s(self) -> float:
        return sum(one.seconds for one in self.stood)


TOGETHER_S = 1e-3  # a launcher needs longer to notice a death and end the other ranks
LEVELS = ("local", "protected", "durable")
PLACES = ("pool", "local", "replica", "durable")  # nearest first
LATER = ("attempt_ended", "removed", "set_aside", "skipped", "nodes_lost", "nodes_back", "home",
         "files_written")  # also by tools, or by agents that end, long after the run
MARKS = ("capture_failed", "write_failed", "removed", "set_aside", "skipped", "restart_failed",
         "durable_failed",
         "protect_failed", "overtaken", "reprotect_begin", "reprotected", "repaired",
         "rebuilt")  # fmt: skip
OF_A_NODE = ("protect_failed", "overtaken", "reprotect_begin", "reprotected", "repaired",
             "rebuilt")  # about one node's part of a version


class _Builder:
    """Takes the events in order of time."""

    def __init__(self, made: History, names: Names):
        self.made, self.names = made, names
        self.captures: dict[tuple[str, float], Version] = {}  # by run and number: the last try
        self.newest: dict[float, Version] = {}
        self.lost: dict[str, list[tuple[float, str, int]]] = {}  # run: when, node, rank
        self.marks: dict[tuple, Mark] = {}

    def add(self, event: dict, at: float) -> None:
        kind, node = event["event"], self.names.of(event["run"], event["node"])
        if kind == "rank_left" and event["lost"]:
            self.lost.setdefault(event["run"], []).append((at, node, int(event["rank"])))
        elif kind == "refused":
            if event["run"] not in {one.run for one
                                    in self.made.refusals}:  # each node's ranks say it
                self.made.refusals.append(Refusal(at, event["run"], str(event.get("why", ""))))
        elif kind == "capture_begin":
            self._part(event, node, at, "begin_s")
        elif kind == "captured":
            self._captured(event, node, at)
        elif kind in ("written", *LEVELS):
            self._reached(event, node, at)
        elif kind == "restored":
            self._restored(event, node, at)
        elif kind in MARKS:
            self._marked(event, node, at)

    def _part(self, event: dict, node: str, at: float, again: str) -> Part:
        """The node's part of the version; of another try where it has done that (`again`) already.
        """
        key = (event["run"], event["version"])
        version = self.captures.get(key)
        part = None if version is None else version.parts.get(node)
        if version is None or (part is not None and getattr(part, again) is not None):
            version = Version(int(event["version"]), event["run"], at)
            self.captures[key] = self.newest[event["version"]] = version
            self.made.versions.append(version)
        return version.parts.setdefault(node, Part(at))

    def _captured(self, event: dict, node: str, at: float) -> None:
        part = self._part(event, node, max(0.0, at - event["seconds"]), "captured_s")
        part.captured_s, part.bytes = at, event["bytes"]
        part.ranks = [_rank(one, node) for one in event["ranks"]]
        part.blocked_s = max((one.seconds for one in part.ranks), default=event["seconds"])

    def _reached(self, event: dict, node: str, at: float) -> None:
        kind, number = event["event"], event["version"]
        version = self.captures.get((event["run"], number)) or self.newest.get(number)
        part = None if version is None else version.parts.get(node)
        if part is None:  # its log does not have the capture, or it had another name then
            if version is not None and kind != "written":
                setattr(version, f"{kind}_s", max(at, getattr(version, f"{kind}_s") or 0.0))
            return
        setattr(part, f"{kind}_s", at)
        if kind in ("written", "local"):
            setattr(part, "writing_s" if kind == "written" else "waiting_s", event["seconds"])
            setattr(part, "disk_s" if kind == "written" else "all_disks_s",
                    event.get("write_seconds") or None)

    def _restored(self, event: dict, node: str, at: float) -> None:
        last = self.made.restarts[-1] if self.made.restarts else None
        if last is None or (last.run, last.version) != (event["run"],
                                                        int(event["version"])) or node in last.nodes:
            last = Restart(at, event["run"], int(event["version"]), event["from"], 0, 0.0)
            self.made.restarts.append(last)
        if _farther(event["from"], last.source):
            last.source = event["from"]
        last.at_s, last.bytes, last.seconds = at, last.bytes + event["bytes"], max(last.seconds,
            event["seconds"])
        last.nodes.append(node)

    def _marked(self, event: dict, node: str, at: float) -> None:
        place = "durable" if event["event"] == "removed" and event.get("from") == "durable" else ""
        key = (event["event"], event["version"], event["run"], place)
        mark, with_owner = self.marks.get(key), event["event"] in OF_A_NODE
        if mark is None or (not with_owner and node in mark.nodes):
            mark = Mark(at, int(event["version"]), event["event"], str(event.get("why", "")),
                        event["run"], place)
            self.marks[key] = mark
            self.made.marks.append(mark)
        if node not in mark.nodes:
            mark.nodes.append(node)
        if with_owner:
            mark.of.add(self.names.of(event["run"], event["of"]))
        if event["event"] == "reprotected":
            mark.bytes, mark.seconds = mark.bytes + event["bytes"], max(mark.seconds,
                event["seconds"])


def _farther(place: str, other: str) -> bool:
    return place in PLACES and other in PLACES and PLACES.index(place) > PLACES.index(other)


def _last(version: Version, name: str, first: float) -> float | None:
    """When the last node reached it, not before what comes first: clocks may differ a little."""
    times = [at for part in version.parts.values() if (at := getattr(part, name)) is not None]
    times += [at for at in [getattr(version, name, None)] if at is not None]
    return max([*times, first]) if times else None


def _rank(one: dict, node: str) -> Rank:
    """Of an unmodified program the log says how long it stood still."""
    copied_s = max(0, one["end_ns"] - one["begin_ns"]) / 1e9
    stopped = one.get("stopped_ns")
    known = isinstance(stopped, int) and 0 < stopped < 1e19
    return Rank(int(one["rank"]), one["bytes"], stopped / 1e9 if known else copied_s, node,
                copied_s, one.get("by") == "fork", **by_ranks.of(one))


def _sum_up(version: Version) -> None:
    """From its nodes' parts to the whole version."""
    parts = list(version.parts.values())
    version.begin_s = min(part.begin_s for part in parts)
    reached = any(getattr(part, f"{level}_s") is not None for part in parts for level in LEVELS)
    if reached or all(part.captured_s is not None for part in parts):
        version.captured_s = _last(version, "captured_s", version.begin_s)
    if version.captured_s is None:
        return
    for level in LEVELS:
        setattr(version, f"{level}_s", _last(version, f"{level}_s", version.captured_s))
    version.bytes = sum(part.bytes for part in parts)
    version.blocked_s = max((part.blocked_s for part in parts if part.blocked_s is not None),
                            default=0.0)
    # By their own clocks: all received it at once, so the node with the shortest time was the last
    # to capture.
    version.writing_s = min((part.waiting_s for part in parts if part.waiting_s is not None),
                            default=None)
    # Local comes to all at once too: the longest began with the first chunk of all nodes.
    version.disk_s = max((part.all_disks_s for part in parts if part.all_disks_s is not None),
                         default=None)
    version.ranks = sorted(rank for part in parts for rank in part.ranks)


def _died(left: list[tuple[float, str, int]], gone: list[str]) -> list[int]:
    first = left[0][0]
    return sorted({rank for at, node, rank in left if at - first <= TOGETHER_S or node in gone})


def _failures(made: History, lost: dict) -> list[Failure]:
    found = []
    refused = {one.run for one in made.refusals}
    for run, left in lost.items():
        if run in refused:
            continue
        at, node, _ = left[0]
        restart = next((one for one in made.restarts if one.at_s > at), None)
        cut = None if restart is None else next(
            (v for v in reversed(made.captured) if v.number == restart.version
             and v.captured_s <= at), None)
        redone = None if cut is None else made.running_s(at) - made.running_s(cut.begin_s)
        gone = sorted({one.node for one in made.losses if one.run == run and one.back_s is None},
                      key=natural)
        ranks = sorted({rank for _, _, rank in left})
        found.append(Failure(at, run, ranks, _died(left, gone), restart, redone, node, gone))
    return found


def _stands(made: History, events: list[dict]) -> list[Stand]:
    """Several failures before the next computing are one."""
    found: list[Stand] = []
    times: dict[tuple[str, str], list[tuple[float, str]]] = {}  # by kind and launch
    for event in events:
        times.setdefault((event["event"], event["run"][:8]), []).append(
            ((event["t_ns"] - made.begin_ns) / 1e9, event["run"]))

    def after(kind: str, launch: str, at: float, run: str | None = None) -> float | None:
        return next((when for when, which in times.get((kind, launch), [])
                     if when >= at and run in (None, which)), None)

    for failure in made.failures:
        at, launch = failure.at_s, failure.run[:8]
        if launch == "0" * 8 or (found and at < found[-1].end_s):
            continue
        back = failure.restart if failure.restart and failure.restart.run[:8] == launch else None
        begin = after("run_begin", launch, at, back and back.run)
        if begin is None:
            continue
        ended = min(after("attempt_ended", launch, at) or at, begin)
        read = begin if back is None else (after("restart_begin", launch, begin, back.run)
                                           or max(begin, back.at_s - back.seconds))
        end = read if back is None else max(read, back.at_s)
        found.append(Stand(at, ended - at, begin - ended, read - begin, end - read))
    return found


def _runs(events: list[dict], begin_ns: int) -> list[Run]:
    """What happens to a version later on does not belong to the run that made it."""
    ends: dict[str, Run] = {}
    for event in events:
        run, at = event["run"], (event["t_ns"] - begin_ns) / 1e9
        if event["event"] not in LATER:
            ends[run] = Run(ends[run].begin_s if run in ends else at, at)
    return list(ends.values())


def _without_log(events: list[dict], names: Names) -> list[str]:
    """Nodes of a run whose log is not there."""
    sizes = {one["run"]: one["nodes"] for one in events if one["event"] == "run_begin"
             and isinstance(one.get("nodes"), int)}
    there = {(one["run"], one["node"]) for one in events}
    missing = {names.of(run, number) for run,
               nodes in sizes.items() if nodes < 2**20 for number in range(nodes)
               if (run, number) not in there}  # fmt: skip
    return sorted(missing, key=natural)


def build(job: str, events: list[dict]) -> History:
    """The history of events in order of time, of which there is at least one."""
    names = Names(events := by_ranks.in_order(events))
    apart = compare(events, names)
    events = moved(events, apart)
    begin = events[0]["t_ns"]
    made = History(job, begin, (events[-1]["t_ns"] - begin) / 1e9, runs=_runs(events, begin),
                   clocks=list(apart.values()))
    made.nodes = sorted({names.of(one["run"], one["node"]) for one in events}, key=natural)
    made.without_log = _without_log(events, names)
    made.losses = losses(events, names)
    builder = _Builder(made, names)
    for event in events:
        builder.add(event, (event["t_ns"] - begin) / 1e9)
    for version in made.versions:
        _sum_up(version)
    made.failures = _failures(made, builder.lost)
    made.stands = _stands(made, events)
    return made
