"""A failure log, whatever it was read from."""

import contextlib
from typing import NamedTuple

import numpy as np

from ..check import PlanError
from ..words import grouped

HEADS, OTHERS = "heads that come again", "other systems"
COMMENTS, EMPTY = "comments", "empty rows"
AGAIN, REPAIR = "failures that are there already", "failures of nodes under repair"
_NOT_ASKED_FOR = (HEADS, OTHERS, COMMENTS, EMPTY)
_BAD_PERCENT_MAX = 1


class BadRow(Exception):
    """A row that cannot be read, for what stands in one of its columns."""

    def __init__(self, column: str, reason: str):
        super().__init__(f"column {column}: {reason}")
        self.column = column


class Rows:
    """What becomes of each row of the file `where`: it makes a failure, or is left out for a
    reason.
    """

    def __init__(self, where: str):
        self.where, self.read, self.left_out, self.notes = where, 0, {}, []
        self._first_lines, self._bad, self._first_bad = {}, 0, ""

    def leave(self, reason: str, line: int, rows: int = 1) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + rows
        self._first_lines.setdefault(reason, line)

    @contextlib.contextmanager
    def row(self, line: int):
        """A BadRow within leaves the row out."""
        try:
            yield
        except BadRow as bad:
            self.leave(f"rows whose {bad.column} cannot be read", line)
            self._bad += 1
            self._first_bad = self._first_bad or f"{self.where}:{line}: {bad}"

    def note(self) -> str:
        reasons = ", ".join(f"{reason} {grouped(count)} (line {self._first_lines[reason]} first)"
                            for reason, count in self.left_out.items())
        left = sum(self.left_out.values())
        return (f"rows of the log: {grouped(self.read)} read, {grouped(self.read - left)} used, "
                f"{grouped(left)} left out{reasons and ': '}{reasons}")

    def end(self) -> None:
        """All rows are read: PlanError if too many of them could not be."""
        asked_for = self.read - sum(self.left_out.get(reason, 0) for reason in _NOT_ASKED_FOR)
        if 100 * self._bad > _BAD_PERCENT_MAX * asked_for:
            raise PlanError("trace", f"{self._first_bad}; {self._bad} of {asked_for} rows cannot "
                                     f"be read, more than {_BAD_PERCENT_MAX} %")
        if self._bad:
            self.notes.append(f"the first row that cannot be read: {self._first_bad}")


class Outage(NamedTuple):
    """A node is away from `begin_s` to `end_s` (None: not said), both on the log's own clock.

    `line` is that of the beginning (of a file without lines: `record`, too), `rows` are those that
    tell it.
    """

    node: str
    begin_s: float
    end_s: float | None
    line: int
    rows: int = 1
    record: int = 0

    def row(self) -> tuple[int, int]:
        return self.line, self.record


class Log(NamedTuple):
    """Failures by time, the first at 0 s. `nodes[i]` is an index into `names`; `repair_s` is NaN
    where not said. `rows`: how many were read, used, and left out for each reason.
    """

    format: str
    times_s: np.ndarray
    nodes: np.ndarray
    repair_s: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...]
    rows: dict


def ended(begin_s: float, end_s: float, column: str) -> float:
    """`end_s`; BadRow for an end before the beginning."""
    if end_s < begin_s:
        raise BadRow(column, "the node is repaired before it failed")
    return end_s


def build(rows: Rows, form: str, outages: list[Outage]) -> Log:
    """A Log of what a reader found, in any order. PlanError for no outage, and for too many rows
    that cannot be read.

    Outages that begin while their node is away already are left out, as they interrupt nothing.
    """
    rows.end()
    if not outages:
        raise PlanError("trace", f"{rows.where}: holds no failure; {rows.note()}")
    kept, others, begun, away_until = [], {}, set(), {}
    for one in sorted(outages, key=lambda outage: outage.begin_s):
        if (one.node, one.begin_s) in begun:
            others[one.row()] = AGAIN, one.rows
        elif one.begin_s < away_until.get(one.node, -np.inf):
            others[one.row()] = REPAIR, one.rows
        else:
            kept.append(one)
        begun.add((one.node, one.begin_s))
        away_until[one.node] = max(away_until.get(one.node, -np.inf),
                                   one.begin_s if one.end_s is None else one.end_s)
    for row in sorted(others.keys() - {one.row() for one in kept}):  # a row may name several nodes
        reason, count = others[row]
        rows.leave(reason, row[0], count)
    names = tuple(sorted({one.node for one in kept}))
    index = {name: i for i, name in enumerate(names)}
    times = np.array([one.begin_s for one in kept])
    ends = np.array([np.nan if one.end_s is None else one.end_s for one in kept])
    nodes = np.array([index[one.node] for one in kept])
    counts = {"read": rows.read, "used": rows.read - sum(rows.left_out.values()),
              "left_out": rows.left_out}
    return Log(form, times - times[0], nodes, ends - times, names, (rows.note(), *rows.notes),
               counts)
