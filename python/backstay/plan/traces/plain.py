"""`time,node` and, if wanted, `repaired`: seconds or dates such as 2024-05-01T12:00:00; the head
may be missing.
"""

import re

from ..check import PlanError
from ..words import counted
from . import text
from .log import Log, Outage, build, wrong

NAME = "plain"
_TIME = re.compile(r"\s*(time\s*,|[-+.\d][^,]*,)", re.IGNORECASE)


def matches(head: str) -> bool:
    return _TIME.match(head) is not None


def read(body: str, where: str, system: str | None) -> Log:
    if system is not None:
        raise PlanError("system", "is for files of several systems; this one has one")
    outages, clock = [], None
    for place, (line, cells) in enumerate(text.rows(body, where, ",")):
        if place == 0 and cells[0].lower() == "time":
            continue
        if len(cells) not in (2, 3) or not cells[1]:
            raise wrong(where, line, "node",
                        f"a line is time,node or time,node,repaired; this one has "
                        f"{counted(len(cells), 'column')}")
        clock, began = _time(cells[0], where, line, "time", clock)
        ended = _time(cells[2], where, line, "repaired",
                      clock)[1] if len(cells) == 3 and cells[2] else None
        outages.append(Outage(cells[1], began, ended, line, "time"))
    return build(where, NAME, outages)


def _time(cell: str, where: str, line: int, column: str, clock: str | None) -> tuple[str, float]:
    """(what the cell is, its seconds); PlanError if it is not what the first one of the file,
    `clock`, was.
    """
    if re.search(r"[/:]|\d-\d", cell):  # a date, of whatever form
        found, at = text.iso_s(cell, "2024-05-01T12:00:00, or seconds", where, line, column)
    else:
        found, at = "seconds", text.number(cell, where, line, column)
    if clock not in (None, found):
        raise wrong(where, line, column, f"must be {clock} as in the lines before, not {cell!r}")
    return found, at
