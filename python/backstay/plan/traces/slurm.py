"""Slurm: `sacctmgr show event --parsable2` (node events) and `sacct --parsable2` (jobs that ended
with NODE_FAIL).

Slurm quotes nothing: reasons, names of jobs and others may hold the separator. tests/plan/slurm has
what Slurm 22.05 printed.
"""

import contextlib
import itertools
import math
import re

from ..check import PlanError
from . import text
from .clock import Clock
from .log import OTHERS, BadRow, Log, Outage, Rows, build, ended

NAME = "slurm"
# The lists of sacct(1), squeue(1), sinfo(1) and scontrol(1), with their short forms.
_ENDED = set("""BOOT_FAIL BF CANCELLED CA COMPLETED CD DEADLINE DL FAILED F LAUNCH_FAILED NODE_FAIL
NF OUT_OF_MEMORY OOM PREEMPTED PR RECONFIG_FAIL REQUEUED RQ REVOKED RV SPECIAL_EXIT SE TIMEOUT
TO""".split())
_GOING_ON = set("""COMPLETING CG CONFIGURING CF EXPEDITING PENDING PD POWER_UP_NODE REQUEUE_FED RF
REQUEUE_HOLD RH RESIZING RS RESV_DEL_HOLD RD RUNNING R SIGNALING SI STAGE_OUT SO STOPPED ST
SUSPENDED S UPDATE_DB""".split())
_STRUCK = {"NODE_FAIL", "NF"}
# Not DRAIN, MAINT, ..: no job was struck.
_FAILED = {"DOWN", "ERROR", "FAIL", "FAILING", "FAILG", "NO_RESPOND", "NOT_RESPONDING"}
_OTHER = {"", *"""ALLOCATED ALLOC BLOCKED CANCEL_REBOOT CLOUD COMPLETING COMP DRAIN DRAINED DRAINING
DRNG DYNAMIC_FUTURE DYNAMIC_NORM EXTERNAL FUTURE FUTR IDLE INVAL INVALID_REG LAUNCH MAINT MIXED MIX
NPC PERFCTRS PLANNED PLND POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN POWER_DRAIN POWER_UP
REBOOT REBOOT_CANCELED REBOOT_ISSUED REBOOT_REQUESTED RESERVED RESV RESUME UNDRAIN UNKNOWN
UNK""".split()}
_FLAGS = "*~#!%$@^-"
_JOB = re.compile(r"(?P<job>\d+(_(\d+|\[[\d,.%:-]+\]))?)(\+\d+)?(?P<step>\.[\w+]+)?")
_STATE = re.compile(r"([A-Z_]+)(\+| BY .*)?", re.IGNORECASE)
_RANGES = r"\[\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\]"
_NODE = rf"(?:[\w.-]|{_RANGES})+"
_NODES = re.compile(rf"{_NODE}(?:,{_NODE})*")
_TIME = re.compile(r"|unknown|none|\d{4}-\d\d-\d\d.*|\d{9,}", re.IGNORECASE)
_NO_NODES = ("", "none assigned", "none", "(null)")
_NEVER = ("", "unknown", "none")
_NAMES_MAX = 1_000_000


def matches(head: str) -> bool:
    return "|" in head or "NodeList" in head or "TimeStart" in head


def read(body: str, rows: Rows, system: str | None) -> Log:
    """`system` is the cluster's name, if the file holds several."""
    head = text.first_line(body)
    if not text.separator(head):
        raise PlanError("trace", f"{rows.where}:1: column 1: nothing separates the columns: sacct "
                                 "and sacctmgr need --parsable2")
    if system is not None and "Cluster" not in head:
        raise PlanError("system", "is for files with a column Cluster; this one has none")
    row_of, wanted, typed = _KINDS["TimeStart" in head]
    clock, seen, clusters, outages = Clock(rows), set(), set(), []
    resaved = "|" not in head or '"' in head  # by a program that quotes
    for line, cells in text.table(body, rows, wanted, typed, quoted=resaved):
        with rows.row(line):
            cluster = cells["Cluster"] if "Cluster" in head else ""
            clusters.add(cluster)
            if system in (None, cluster):
                outages += row_of(cells, cluster, line, rows, clock, seen)
            else:
                rows.leave(OTHERS, line)
    named = ", ".join(sorted(clusters - {""}))
    if system is not None and system not in clusters:
        raise PlanError("system", f"must be one of {named}, not {system!r}")
    if system is None and len(clusters - {""}) > 1:
        rows.notes.append(f"the log holds the clusters {named}; all of them count, --system "
                          "chooses one")
    if row_of is _job:
        rows.notes.append("sacct does not say which nodes failed: each NODE_FAIL counts as one "
                          "node")
    return build(rows, NAME, outages)


def _event(cells, cluster, line, rows, clock, seen):
    if not cells["NodeName"]:
        rows.leave("events without a node", line)  # the cluster's own changes
    elif not _fails(cells["State"]):
        rows.leave("events of another kind (drained, ..)", line)
    else:
        began, end = clock.s(cells["TimeStart"], "TimeStart"), None
        if cells["TimeEnd"].lower() not in _NEVER:
            end = ended(began, clock.s(cells["TimeEnd"], "TimeEnd"), "TimeStart")
        return [Outage(name, began, end, line) for name in hosts(cells["NodeName"])]
    return []


def _job(cells, cluster, line, rows, clock, seen):
    job = _JOB.fullmatch(cells["JobID"])
    if not job:
        raise BadRow("JobID", f"must be a job such as 12, 12_3 or 12+1, not {cells['JobID']!r}")
    if job["step"]:
        return rows.leave("steps of jobs", line) or []
    states = _states(cells["State"])
    if states <= _GOING_ON or (states & _STRUCK and cells["End"].lower() in _NEVER):
        rows.leave("jobs that still run", line)
    elif not states & _STRUCK:
        rows.leave("jobs that ended otherwise", line)
    elif cells["NodeList"].lower() in _NO_NODES:
        rows.leave("jobs without nodes", line)
    else:
        at, nodes = clock.s(cells["End"], "End"), hosts(cells["NodeList"])
        if (cluster, job["job"], at) in seen:
            rows.leave("parts of a job that counts already", line)
        else:
            seen.add((cluster, job["job"], at))
            # sacct does not say which of the job's nodes failed; one failure of the first one
            # represents it.
            return [Outage(nodes[0], at, None, line)]
    return []


def _states(shown: str) -> set[str]:
    """The states of a job that may be meant; several where + cuts them short."""
    word = _STATE.fullmatch(shown)
    name, more = (word[1].upper(), word[2] or "") if word else ("", "")
    found = {one for one in _ENDED | _GOING_ON
             if one == name or (more == "+" and one.startswith(name))}
    if not found or (more not in ("", "+") and name != "CANCELLED"):
        raise BadRow("State", f"must be a state of Slurm's jobs, not {shown!r}")
    return found


def _fails(shown: str) -> bool:
    words = {word.rstrip(_FLAGS) for word in shown.upper().split("+")}
    if not words & _FAILED and words - _OTHER:
        raise BadRow("State", f"must be a state of Slurm's nodes, not {shown!r}")
    return bool(words & _FAILED)


def hosts(listed: str) -> list[str]:
    """Names of a host list such as r[0-1]n[01-03,7],login1. BadRow for one that does not parse."""
    if not _NODES.fullmatch(listed):
        raise BadRow("NodeList", f"must be a list of nodes such as n[01-03,7], not {listed!r}")
    found = []
    for part in re.findall(_NODE, listed):
        choices = [_numbers(piece) for piece in re.findall(rf"{_RANGES}|[^\[]+", part)]
        if len(found) + math.prod(map(len, choices)) > _NAMES_MAX:
            raise BadRow("NodeList", f"names more than {_NAMES_MAX} nodes")
        found += map("".join, itertools.product(*choices))
    return found


def _numbers(piece: str) -> list[str]:
    """The numbers of [01-03,7], as wide as its first; of another text, itself."""
    if not piece.startswith("["):
        return [piece]
    found = []
    for span in piece[1:-1].split(","):
        low, _, high = span.partition("-")
        last = int(high or low)
        if not 0 <= last - int(low) < _NAMES_MAX:
            raise BadRow("NodeList", f"must be a list of nodes such as n[01-03,7], not {piece!r}")
        found += [f"{i:0{len(low)}d}" for i in range(int(low), last + 1)]
    return found


def _told_by(reader):
    def is_one(shown: str) -> bool:
        with contextlib.suppress(BadRow):
            reader(shown)
            return True
        return False
    return is_one


_NAMES = re.compile(r"[\w.-]*").fullmatch
_KINDS = {  # by what the head says: what reads a row, the columns that it needs, forms of columns
    True: (_event, ("NodeName", "TimeStart", "TimeEnd", "State"), {
        "Cluster": _NAMES, "NodeName": lambda listed: not listed or _NODES.fullmatch(listed),
        "TimeStart": _TIME.fullmatch, "TimeEnd": _TIME.fullmatch, "State": _told_by(_fails)}),
    False: (_job, ("JobID", "State", "End", "NodeList"), {
        "Cluster": _NAMES, "JobID": _JOB.fullmatch, "State": _told_by(_states),
        "NodeList": lambda listed: listed.lower() in _NO_NODES or _NODES.fullmatch(listed),
        **dict.fromkeys(("Submit", "Eligible", "Start", "End"), _TIME.fullmatch),
        "ExitCode": re.compile(r"(\d+:\d+)?").fullmatch}),
}  # fmt: skip
