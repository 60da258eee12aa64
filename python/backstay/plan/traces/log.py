"""A failure log, whatever it was read from."""

from typing import NamedTuple

import numpy as np

from ..check import PlanError
from ..words import counted, plural


class Outage(NamedTuple):
    """One line of a log: a node is away from `begin_s` to `end_s` (None: not said), both on the
    log's own clock.

    `line` and `column` are those of the beginning.
    """

    node: str
    begin_s: float
    end_s: float | None
    line: int
    column: str


class Log(NamedTuple):
    """Failures by time, the first at 0 s. `nodes[i]` is an index into `names`; `repair_s` is NaN
    where not said.

    `overlaps`: outages that begin while their node is away already; they are left out, as they
    interrupt nothing.
    """

    format: str
    times_s: np.ndarray
    nodes: np.ndarray
    repair_s: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...]
    overlaps: int


def wrong(where: str, line: int, column: str, reason: str) -> PlanError:
    """The error of a reader."""
    return PlanError("trace", f"{where}:{line}: column {column}: {reason}")


def build(where: str, form: str, outages: list[Outage], notes: list[str] = ()) -> Log:
    """A Log of what a reader found, in any order. PlanError for no outage, and for an end before
    its beginning.
    """
    if not outages:
        raise PlanError("trace", f"{where}: holds no failure")
    kept, overlapping, away_until = [], [], {}
    for one in sorted(outages, key=lambda outage: outage.begin_s):
        if one.end_s is not None and one.end_s < one.begin_s:
            raise wrong(where, one.line, one.column, "the node is repaired before it failed")
        if one.begin_s < away_until.get(one.node, -np.inf):
            overlapping.append(one)
        else:
            kept.append(one)
        away_until[one.node] = max(away_until.get(one.node, -np.inf),
                                   one.begin_s if one.end_s is None else one.end_s)
    found = list(notes)
    if overlapping:
        first = min(overlapping, key=lambda outage: outage.line)
        found.append(
            f"{counted(len(overlapping), 'failure')} of nodes under repair "
            f"{plural(len(overlapping), 'is', 'are')} left out; "
            f"the first: {where}:{first.line}: column {first.column}, node {first.node}"
        )
    names = tuple(sorted({one.node for one in kept}))
    index = {name: i for i, name in enumerate(names)}
    times = np.array([one.begin_s for one in kept])
    ends = np.array([np.nan if one.end_s is None else one.end_s for one in kept])
    nodes = np.array([index[one.node] for one in kept])
    return Log(form, times - times[0], nodes, ends - times, names, tuple(found), len(overlapping))
