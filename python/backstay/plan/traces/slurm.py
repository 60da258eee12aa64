"""Slurm: `sacctmgr show event --parsable2` (node events) and `sacct --parsable2` (jobs that ended
with NODE_FAIL).

Slurm quotes nothing: reasons and names of jobs may hold the separator. tests/plan/slurm has what
Slurm 22.05 printed.
"""

import re

from ..words import counted, plural
from . import text
from .log import Log, Outage, build, wrong

NAME = "slurm"
DATES = ("%Y-%m-%dT%H:%M:%S",)
SHOWN = "2024-05-01T12:00:00"
_FAILED = ("DOWN", "FAIL", "NO_RESPOND",
           "NOT_RESPONDING")  # not DRAIN, MAINT, ..: no job was struck
_NAMES_MAX = 1_000_000


def matches(head: str) -> bool:
    return "|" in head


def read(body: str, where: str, system: str | None) -> Log:
    """`system` is the cluster's name, if the file holds several."""
    head = body.lstrip().split("\n", 1)[0]
    return (_events if "TimeStart" in head else _jobs)(body, where, system)


def _mine(cells, system) -> bool:
    return system is None or cells.get("Cluster") == system


def _events(body, where, system) -> Log:
    outages, others = [], 0
    for line, cells in text.table(body, where, "|", ("NodeName", "TimeStart", "TimeEnd", "State"),
                                  free="Reason"):
        if not cells["NodeName"] or not _mine(cells,
                                              system):  # without a node: the cluster's own changes
            continue
        if not any(word in cells["State"].upper() for word in _FAILED):
            others += 1
            continue
        began = text.date_s(cells["TimeStart"], DATES, SHOWN, where, line, "TimeStart")
        ended = None
        if cells["TimeEnd"] not in ("", "Unknown"):
            ended = text.date_s(cells["TimeEnd"], DATES, SHOWN, where, line, "TimeEnd")
        outages += [Outage(name, began, ended, line, "TimeStart") for name
                    in hosts(cells["NodeName"], where, line)]
    left_out = [f"{counted(others, 'event')} of another kind than failures (drained, ..) "
                f"{plural(others, 'is', 'are')} left out"]
    return build(where, NAME, outages, left_out * (others > 0))


def _jobs(body, where, system) -> Log:
    outages = []
    for line, cells in text.table(body, where, "|", ("JobID", "State", "End", "NodeList"),
                                  free="JobName"):
        if "." in cells["JobID"] or not cells["State"].startswith("NODE_FAIL") or not _mine(cells,
            system):
            continue
        ended = text.date_s(cells["End"], DATES, SHOWN, where, line, "End")
        # sacct does not say which of the job's nodes failed; one failure of the first one
        # represents it.
        outages.append(Outage(hosts(cells["NodeList"], where, line)[0], ended, None, line, "End"))
    return build(where, NAME, outages,
                 ["sacct does not say which nodes failed: each NODE_FAIL counts as one node"])


def hosts(listed: str, where: str, line: int) -> list[str]:
    """Names of a host list such as n[01-03,7],login1. PlanError for one that does not parse."""
    found = []
    if listed.count("[") != listed.count("]"):
        raise wrong(where, line, "NodeList",
                    f"must be a list of nodes such as n[01-03,7], not {listed!r}")
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", listed):
        found += _expanded(part, where, line)
        if len(found) > _NAMES_MAX:
            raise wrong(where, line, "NodeList", f"names more than {_NAMES_MAX} nodes")
    if not found:
        raise wrong(where, line, "NodeList", f"must be a list of nodes, not {listed!r}")
    return found


def _expanded(part: str, where: str, line: int) -> list[str]:
    piece = re.fullmatch(r"([^\[\]]*)\[([0-9,-]+)\]([^\[\]]*)", part)
    if not piece:
        if "[" in part or "]" in part:
            raise wrong(where, line, "NodeList",
                        f"must be a list of nodes such as n[01-03,7], not {part!r}")
        return [part]
    names = []
    for span in piece[2].split(","):
        low, _, high = span.partition("-")
        high = high or low
        if not (low.isdigit() and high.isdigit() and 0 <= int(high) - int(low) < _NAMES_MAX):
            raise wrong(where, line, "NodeList",
                        f"must be a list of nodes such as n[01-03,7], not {part!r}")
        names += [f"{piece[1]}{i:0{len(low)}d}{piece[3]}" for i in range(int(low), int(high) + 1)]
    return names
