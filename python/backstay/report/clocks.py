"""How far the clocks of nodes are apart, from what their logs must agree on.

All nodes receive a level at nearly the same moment, and none before the last one has captured: so
each version shows how far ahead a node's clock seems, and between which bounds it certainly is.
"""

import statistics
from typing import NamedTuple

from .nodes import Names

LEVELS = ("local", "protected", "durable")
AT_ONCE = ("local", "protected")  # these reach all nodes through the tree of agents
NOISE_S, STRIKING_S = 0.001, 1.0


class Clock(NamedTuple):
    """One node's clock in one run. `proven`: the logs admit no other reading; its times were moved
    by that much.
    """

    run: str
    node: str
    ahead_s: float
    versions: int  # from which it was seen
    proven: bool


class _Node:
    """Times of one node in one run, in s."""

    def __init__(self):
        self.captured: dict = {}
        self.told: dict = {}  # (version, level)

    def add(self, event: dict, at: float) -> None:
        if event["event"] == "captured":
            self.captured.setdefault(event["version"], at)
        else:
            self.told.setdefault((event["version"], event["event"]), at)


def _by_run(events: list[dict], begin_ns) -> dict[str, dict[int, _Node]]:
    runs: dict[str, dict[int, _Node]] = {}
    for event in events:
        if event["event"] in ("captured", *LEVELS):
            nodes = runs.setdefault(event["run"], {})
            nodes.setdefault(event["node"], _Node()).add(event, (event["t_ns"] - begin_ns) / 1e9)
    return runs


def _apart(one: _Node, other: _Node) -> list[float]:
    """How much later than `other`, each by its own clock, `one` received the same levels."""
    return [at - other.told[key] for key,
            at in one.told.items() if key in other.told and key[1] in AT_ONCE]


def _bounds(one: _Node, other: _Node) -> tuple[float, float]:
    """How far `one` is ahead of `other`: at least, at most."""
    least = [one.captured[version] - at for (version, _),
             at in other.told.items() if version in one.captured]
    most = [at - other.captured[version] for (version, _),
            at in one.told.items() if version in other.captured]
    return max(least, default=-float("inf")), min(most, default=float("inf"))


def _reference(nodes: dict[int, _Node]) -> int:
    """The node whose clock is in the middle; of two, the one that received most levels, then the
    first.
    """
    first = max(sorted(nodes), key=lambda number: len(nodes[number].told))
    ahead = {number: statistics.median(apart) for number,
             node in nodes.items() if (apart := _apart(node, nodes[first]))}
    if not ahead:
        return first
    middle = statistics.median(ahead.values())
    return min(ahead, key=lambda number: (abs(ahead[number] - middle), number != first, number))


def _compared(run: str, name: str, one: _Node, other: _Node) -> Clock | None:
    apart, (least, most) = _apart(one, other), _bounds(one, other)
    proven = least > NOISE_S or most < -NOISE_S
    seems = statistics.median(apart) if apart else least if least > 0 else most if most < 0 else 0.0
    if proven and least <= most:
        seems = min(max(seems, least), most)
    return Clock(run, name, seems, len(apart),
                 proven) if proven or abs(seems) > STRIKING_S else None


def compare(events: list[dict], names: Names) -> dict[tuple[str, int], Clock]:
    """Clocks that are apart, by run and number of the node."""
    found = {}
    for run, nodes in _by_run(events, events[0]["t_ns"]).items():
        middle = _reference(nodes)
        for number in sorted(nodes.keys() - {middle}):
            if clock := _compared(run, names.of(run, number), nodes[number], nodes[middle]):
                found[run, number] = clock
    return found


def moved(events: list[dict], clocks: dict[tuple[str, int], Clock]) -> list[dict]:
    """Events in order of time, those of clocks that are apart for certain put where the others have
    them.
    """
    shift = {key: round(clock.ahead_s * 1e9) for key, clock in clocks.items() if clock.proven}
    if not shift:
        return events
    made = [{**one, "t_ns": max(0, one["t_ns"] - shift.get((one["run"], one["node"]), 0))} for one
            in events]
    return sorted(made, key=lambda event: event["t_ns"])
