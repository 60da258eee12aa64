"""How the nodes of a job differ: per version the last one and by how much, per node its sums."""

import dataclasses
from typing import NamedTuple

from .history import History, Part, Version

# The measures: seconds of a node's part, by that node's own clock. A level reaches all nodes at
# once.
MEASURES = {
    "blocked": ("longest wait of a rank", lambda part: part.blocked_s),
    "captured": ("until captured", lambda part: _since(part, part.captured_s)),
    "written": ("from captured to its own disk", lambda part: part.writing_s),
    "local": ("until it had level local", lambda part: _since(part, part.local_s)),
    "protected": ("until it had level protected", lambda part: _since(part, part.protected_s)),
    "durable": ("until it had level durable", lambda part: _since(part, part.durable_s)),
}  # fmt: skip


def _since(part: Part, at_s: float | None) -> float | None:
    return None if at_s is None else max(0.0, at_s - part.begin_s)


class Spread(NamedTuple):
    """One measure of a version over its nodes: the slowest one, its time, and how much later it was
    than the fastest.
    """

    node: str
    seconds: float
    apart_s: float


def of(version: Version, measure: str) -> Spread | None:
    """None: fewer than two nodes have it."""
    value = MEASURES[measure][1]
    times = {node: seconds for node,
             part in version.parts.items() if (seconds := value(part)) is not None}
    if len(times) < 2:
        return None
    slowest = max(times, key=times.get)
    return Spread(slowest, times[slowest], times[slowest] - min(times.values()))


@dataclasses.dataclass
class NodeSum:
    """One node's share of a job. Times in s."""

    node: str
    bytes: int = 0  # captured
    versions: int = 0
    newest: int | None = None  # version that it captured
    level: str = ""  # of that
    disk_bytes: int = 0
    disk_s: float = 0.0
    slowest: dict[str,
                  int] = dataclasses.field(default_factory=lambda: dict.fromkeys(("blocked",
                      "captured", "written"), 0))
    waited_s: float = 0.0  # the longest that a rank of it waited
    waited_version: int | None = None
    restarts: int = 0
    failures: int = 0
    lost: int = 0

    @property
    def bandwidth(self) -> float | None:
        """To its disk, in B/s, on average."""
        return self.disk_bytes / self.disk_s if self.disk_s > 0 else None


def level_of(version: Version) -> str:
    return next((level for level in ("durable", "protected", "local")
                 if getattr(version, f"{level}_s") is not None), "captured")


def _add(found: NodeSum, version: Version, part: Part) -> None:
    found.bytes, found.versions = found.bytes + part.bytes, found.versions + 1
    found.newest, found.level = version.number, level_of(version)
    # Older logs do not say when the first chunk was handed over, or only when all nodes had
    # written.
    seconds = next((one for one in (part.disk_s, part.writing_s, part.waiting_s)
                    if one is not None), None)
    if seconds is not None:
        found.disk_bytes, found.disk_s = found.disk_bytes + part.bytes, found.disk_s + seconds
    if part.blocked_s is not None and part.blocked_s >= found.waited_s:
        found.waited_s, found.waited_version = part.blocked_s, version.number


def nodes(history: History) -> list[NodeSum]:
    """The sums of all nodes that have a log, and of those that were lost."""
    sums = {name: NodeSum(name) for name in history.nodes}
    for version in history.captured:
        for name, part in version.parts.items():
            if part.captured_s is not None:
                _add(sums[name], version, part)
        for measure in ("blocked", "captured", "written"):
            if slowest := of(version, measure):
                sums[slowest.node].slowest[measure] += 1
    for restart in history.restarts:
        for name in set(restart.nodes):
            sums[name].restarts += 1
    for failure in history.failures:
        for name in failure.lost or [failure.node]:
            sums.setdefault(name, NodeSum(name)).failures += 1
    for loss in history.lost_nodes:
        sums.setdefault(loss.node, NodeSum(loss.node)).lost += 1
    return list(sums.values())


def longest_wait(history: History) -> tuple[str, int, int, float] | None:
    """(node, rank, version, s) of the rank that waited longest of all."""
    waits = [(rank.seconds, version.number, rank) for version in history.captured for rank
             in version.ranks]
    if not waits:
        return None
    seconds, version, rank = max(waits, key=lambda one: one[0])
    return rank.node, rank.rank, version, seconds
