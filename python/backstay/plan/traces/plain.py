"""`time,node` and, if wanted, `repaired`: seconds or dates such as 2024-05-01T12:00:00; the head
may be missing.
"""

import re

from ..check import PlanError
from ..words import counted
from . import text
from .clock import Clock
from .log import HEADS, BadRow, Log, Outage, Rows, build, ended

NAME = "plain"
_TIME = re.compile(r'\s*"?(time"?\s*[,;\t]|[-+.\d][^,;\t]*[,;\t])', re.IGNORECASE)


def matches(head: str) -> bool:
    return _TIME.match(head) is not None


def read(body: str, rows: Rows, system: str | None) -> Log:
    if system is not None:
        raise PlanError("system", "is for files of several systems; this one has one")
    outages, clock, separator = [], Clock(rows), text.separator(text.first_line(body))
    begun = False
    for line, cells in text.cells(body, rows, separator):
        if cells[0].lower() == "time":
            if begun:
                rows.leave(HEADS, line)
            else:
                rows.read -= 1
        else:
            with rows.row(line):
                outages.append(_outage(cells, clock, line))
        begun = True
    return build(rows, NAME, outages)


def _outage(cells: list[str], clock: Clock, line: int) -> Outage:
    if len(cells) < 2 or not cells[1] or any(cells[3:]):
        raise BadRow("node", f"a line is time,node or time,node,repaired; this one has "
                             f"{counted(len(cells), 'column')}")
    began, end = clock.s(cells[0], "time"), None
    if any(cells[2:]):
        end = ended(began, clock.s(cells[2], "repaired"), "time")
    return Outage(cells[1], began, end, line)
