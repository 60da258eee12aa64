"""InfiniteHBD's fault trace: a JSON list of records with node_id, event_time in days, event_type.
"""

import json

from ..check import PlanError
from . import clock
from .log import BadRow, Log, Outage, Rows, build, ended

NAME = "infinitehbd"
DAY_S = 86_400.0
_BLANK = " \t\r\n"


def matches(head: str) -> bool:
    return head.startswith("[")


def records(body: str, where: str):
    """(line, record) of each element of the list, decoded one by one so that errors know their
    line.
    """
    decoder, place = json.JSONDecoder(), body.index("[") + 1
    line, counted = 1, 0
    while True:
        while place < len(body) and body[place] in _BLANK + ",":
            place += 1
        line, counted = line + body.count("\n", counted, place), place
        if body[place : place + 1] == "]":
            if rest := body[place + 1 :].strip():
                raise PlanError("trace",
                                f"{where}:{line}: the list ends here, and more follows: "
                                f"{rest[:20]!r}")
            return
        try:
            record, place = decoder.raw_decode(body, place)
        except (json.JSONDecodeError, RecursionError) as failure:
            at = getattr(failure, "lineno", line), getattr(failure, "colno", 1)
            raise PlanError("trace", f"{where}:{at[0]}: column {at[1]}: not JSON") from None
        yield line, record


def read(body: str, rows: Rows, system: str | None) -> Log:
    """Pairs of fault_start and fault_end of a node; a fault that does not end stays open."""
    if system is not None:
        raise PlanError("system", "is for files of several systems; this one has one")
    open_, outages, time = {}, [], clock.Clock(rows, DAY_S)
    for number, (line, record) in enumerate(records(body, rows.where)):
        rows.read += 1
        with rows.row(line):
            node, kind = _key(record, "node_id"), _key(record, "event_type")
            at = time.s(_key(record, "event_time"), "event_time")
            begun = open_.setdefault(node, [])
            if kind == "fault_start":
                begun.append(Outage(node, at, None, line, record=number))
            elif kind != "fault_end":
                raise BadRow("event_type", f"must be fault_start or fault_end, not {kind!r}")
            elif not begun:
                raise BadRow("event_type", f"fault_end of node {node}, which has no fault")
            else:
                end = ended(begun[0].begin_s, at, "event_time")
                outages.append(begun.pop(0)._replace(end_s=end, rows=2))
    outages += [one for left in open_.values() for one in left]
    return build(rows, NAME, outages)


def _key(record, key: str):
    if not isinstance(record, dict) or key not in record:
        raise BadRow(key, "is missing in this record")
    value = record[key]
    if key != "event_time" and not isinstance(value, str):
        raise BadRow(key, f"must be text, not {value!r}")
    return value
