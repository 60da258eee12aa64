"""LA-UR-05-7318: failures of Los Alamos' systems, 1996 to 2005 (CSV; dates to the minute)."""

from ..check import PlanError
from . import text
from .log import Log, Outage, build, wrong

NAME = "lanl"
COLUMNS = ("System", "nodenumz", "Prob Started", "Prob Fixed")
DATES = ("%m/%d/%Y %H:%M", "%m/%d/%y %H:%M")


def matches(head: str) -> bool:
    return head.startswith("System,") or "Prob Started" in head


def read(body: str, where: str, system: str | None) -> Log:
    """The failures of one `system`; it must be named if the file holds several."""
    rows = list(text.table(body, where, ",", COLUMNS))
    systems = sorted({cells["System"] for _, cells in rows}, key=lambda name: (len(name), name))
    if system is None and len(systems) > 1:
        raise PlanError("system", f"must be given: {where} holds the systems {', '.join(systems)}")
    chosen = system if system is not None else (systems or [""])[0]
    if systems and chosen not in systems:
        raise PlanError("system", f"must be one of {', '.join(systems)}, not {chosen!r}")
    return build(where, NAME,
                 [_outage(cells, where, line) for line, cells in rows if cells["System"] == chosen])


def _outage(cells, where, line) -> Outage:
    if not cells["nodenumz"]:
        raise wrong(where, line, "nodenumz", "is empty")
    began, ended = (
        text.date_s(cells[name], DATES, "6/21/2005 10:54", where, line, name) for name
        in COLUMNS[2:]
    )
    return Outage(cells["nodenumz"], began, ended, line, "Prob Started")
