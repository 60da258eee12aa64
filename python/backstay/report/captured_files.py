"""What programs wrote into captured files, and how long that took, out of the event logs of a job's
files (docs/format/events.md: `files_written`). Times in s.
"""

import dataclasses
import statistics
from typing import NamedTuple

KINDS = ("captured", "direct", "real")
LEVELS = ("captured", "local", "home")


class Size(NamedTuple):
    """Writes of fewer bytes than `below` (None: no limit), and no fewer than the class before."""

    below: int | None
    writes: int
    bytes: int
    seconds: float


class Wait(NamedTuple):
    """Calls of one kind, all programs together, and the longest of them."""

    call: str
    calls: int
    seconds: float
    longest_s: float


class Spread(NamedTuple):
    """How long versions took to come to a level."""

    versions: int
    median_s: float
    longest_s: float


class Files(NamedTuple):
    files: int = 0
    bytes: int = 0


@dataclasses.dataclass
class Profile:
    """`files`: by KINDS. `levels`: begin to captured, captured to local, captured to home."""

    files: dict[str, Files]
    sizes: list[Size]
    waits: list[Wait]
    levels: dict[str, Spread]

    @property
    def writes(self) -> int:
        return sum(one.writes for one in self.sizes)

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.sizes)


def _order(below: int | None) -> float:
    return float("inf") if below is None else below


def _sizes(written: list[dict]) -> list[Size]:
    sums: dict[int | None, Size] = {}
    for one in (size for event in written for size in event["writes"]):
        below = int(one["below"]) or None
        before = sums.get(below, Size(below, 0, 0, 0.0))
        sums[below] = Size(below, before.writes + int(one["writes"]),
                           before.bytes + int(one["bytes"]), before.seconds + one["seconds"])
    return [sums[below] for below in sorted(sums, key=_order)]


def _waits(written: list[dict]) -> list[Wait]:
    sums: dict[str, Wait] = {}
    for one in (wait for event in written for wait in event["waits"]):
        call = str(one.get("call", "?"))
        before = sums.get(call, Wait(call, 0, 0.0, 0.0))
        sums[call] = Wait(call, before.calls + int(one["calls"]), before.seconds + one["seconds"],
                          max(before.longest_s, one["longest"]))
    return list(sums.values())


def _levels(events: list[dict]) -> dict[str, Spread]:
    took: dict[str, list[float]] = {level: [] for level in LEVELS}
    captured_ns: dict[tuple, int] = {}
    for event in events:
        kind = event["event"]
        if kind == "captured" and event.get("writers"):
            captured_ns[event.get("job"), event["version"]] = event["t_ns"]
            took["captured"].append(event["seconds"])
        began_ns = captured_ns.get((event.get("job"), event.get("version")))
        if kind == "local" and began_ns is not None:
            took["local"].append(event["seconds"])
        if kind == "home" and began_ns is not None:
            took["home"].append(max(0.0, (event["t_ns"] - began_ns) / 1e9))
    return {level: Spread(len(all_s), statistics.median(all_s), max(all_s)) for level,
            all_s in took.items() if all_s}


def of(events: list[dict]) -> Profile | None:
    """Out of the events of the jobs of one job's files, in order of time. None: there are none."""
    written = [event for event in events if event["event"] == "files_written"]
    levels = _levels(events)
    if not written and not levels:
        return None
    files = {kind: Files(*(sum(int(event[kind][part]) for event in written) for part
                           in Files._fields)) for kind in KINDS}  # fmt: skip
    return Profile(files, _sizes(written), _waits(written), levels)


def as_data(profile: Profile) -> dict:
    """For --json."""
    return {**{kind: one._asdict() for kind, one in profile.files.items()},
            "writes": [one._asdict() for one in profile.sizes],
            "waits": [one._asdict() for one in profile.waits],
            "levels": {level: one._asdict() for level, one in profile.levels.items()}}  # fmt: skip
