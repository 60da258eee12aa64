"""LA-UR-05-7318: failures of Los Alamos' systems, 1996 to 2005 (CSV; dates to the minute)."""

import re

from ..check import PlanError
from . import text
from .clock import AMERICAN, Clock
from .log import OTHERS, BadRow, Log, Outage, Rows, build, ended

NAME = "lanl"
COLUMNS = ("System", "nodenumz", "Prob Started", "Prob Fixed")
_NOT_ENDED = ("", "unknown")
_TYPED = {**dict.fromkeys(COLUMNS[:2], re.compile(r"[\w.-]+").fullmatch),
          **dict.fromkeys(COLUMNS[2:], re.compile(r"|.*\d:\d\d.*|unknown", re.I).fullmatch)}


def matches(head: str) -> bool:
    return head.startswith("System,") or "prob started" in head.lower()


def read(body: str, rows: Rows, system: str | None) -> Log:
    """The failures of one `system`; it must be named if the file holds several."""
    of_system = {}
    for line, cells in text.table(body, rows, COLUMNS, _TYPED):
        with rows.row(line):
            of_system.setdefault(_not_empty(cells, "System"), []).append((line, cells))
    systems = sorted(of_system, key=lambda name: (len(name), name))
    if system is None and len(systems) > 1:
        raise PlanError("system", f"must be given: {rows.where} holds the systems "
                                  f"{', '.join(systems)}")
    if system is not None and systems and system not in systems:
        raise PlanError("system", f"must be one of {', '.join(systems)}, not {system!r}")
    outages, clock = [], Clock(rows, 1.0, AMERICAN, "6/21/2005 10:54")
    for name, found in of_system.items():
        if system not in (None, name):
            rows.leave(OTHERS, found[0][0], len(found))
            continue
        for line, cells in found:
            with rows.row(line):
                outages.append(_outage(cells, clock, line))
    return build(rows, NAME, outages)


def _not_empty(cells, column: str) -> str:
    if not cells[column]:
        raise BadRow(column, "is empty")
    return cells[column]


def _outage(cells, clock: Clock, line: int) -> Outage:
    node, fixed = _not_empty(cells, "nodenumz"), cells["Prob Fixed"]
    began = clock.s(cells["Prob Started"], "Prob Started")
    end = None
    if fixed.lower() not in _NOT_ENDED:
        end = ended(began, clock.s(fixed, "Prob Fixed"), "Prob Started")
    return Outage(node, began, end, line)
