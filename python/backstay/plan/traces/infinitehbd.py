"""InfiniteHBD's fault trace: a JSON list of records with node_id, event_time in days, event_type.
"""

import json

from ..check import PlanError
from . import text
from .log import Log, Outage, build, wrong

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


def read(body: str, where: str, system: str | None) -> Log:
    """Pairs of fault_start and fault_end of a node; a fault that does not end stays open."""
    if system is not None:
        raise PlanError("system", "is for files of several systems; this one has one")
    open_, outages = {}, []
    for line, record in records(body, where):
        node, kind = _key(record, "node_id", where, line), _key(record, "event_type", where, line)
        at = DAY_S * text.number(_key(record, "event_time", where, line), where, line, "event_time")
        if kind == "fault_start":
            open_.setdefault(node, []).append((at, line))
        elif kind != "fault_end":
            raise wrong(where, line, "event_type",
                        f"must be fault_start or fault_end, not {kind!r}")
        elif not open_.get(node):
            raise wrong(where, line, "event_type", f"fault_end of node {node}, which has no fault")
        else:
            begun, begun_line = open_[node].pop(0)
            outages.append(Outage(node, begun, at, begun_line, "event_time"))
    outages += [Outage(node, at, None, line, "event_time") for node, left in open_.items() for at,
                line in left]
    return build(where, NAME, outages)


def _key(record, key: str, where: str, line: int):
    if not isinstance(record, dict) or key not in record:
        raise wrong(where, line, key, "is missing in this record")
    value = record[key]
    if key != "event_time" and not isinstance(value, str):
        raise wrong(where, line, key, f"must be text, not {value!r}")
    return value
