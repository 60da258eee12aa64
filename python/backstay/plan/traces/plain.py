"""`time,node` and, if wanted, `repaired`: seconds or dates such as 2024-05-01T12:00:00; the head may be missing."""

import re

from ..check import PlanError
from ..words import counted
from . import text
from .log import Log, Outage, build, wrong

NAME = "plain"
DATES = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M")
_TIME = re.compile(r"\s*(time\s*,|[-+.\d][^,]*,)", re.IGNORECASE)


def matches(head: str) -> bool:
    return _TIME.match(head) is not None


def read(body: str, where: str, system: str | None) -> Log:
    if system is not None:
        raise PlanError("system", "is for files of several systems; this one has one")
    outages, dated = [], None
    for place, (line, cells) in enumerate(text.rows(body, where, ",")):
        if place == 0 and cells[0].lower() == "time":
            continue
        if len(cells) not in (2, 3) or not cells[1]:
            raise wrong(where, line, "node", f"a line is time,node or time,node,repaired; this one has {counted(len(cells), 'column')}")
        if dated is None:
            dated = _dated(cells[0])
        elif dated != _dated(cells[0]):
            raise wrong(where, line, "time", f"must be {'a date' if dated else 'seconds'} as in the lines before, not {cells[0]!r}")
        began = _seconds(cells[0], where, line, "time")
        ended = _seconds(cells[2], where, line, "repaired") if len(cells) == 3 and cells[2] else None
        outages.append(Outage(cells[1], began, ended, line, "time"))
    return build(where, NAME, outages)


def _dated(cell: str) -> bool:
    """Whether it is a date, of whatever form, and not a number of seconds."""
    return re.search(r"[/:]|\d-\d", cell) is not None


def _seconds(cell: str, where: str, line: int, column: str) -> float:
    if _dated(cell):
        return text.date_s(cell, DATES, "2024-05-01T12:00:00, or seconds", where, line, column)
    return text.number(cell, where, line, column)
