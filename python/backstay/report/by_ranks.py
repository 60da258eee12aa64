"""Logs of programs whose ranks write their versions (docs/format/events.md): rank 0 tells of a
version when it learns of it, and leaves out what an agent would know.
"""

TIMES = ("open_s", "write_s", "close_s", "hand_over_s", "wait_s")


def _number(value) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if known else 0.0


def of(one: dict) -> dict:
    """Further fields of a Rank; none of a rank that had an agent."""
    if not isinstance(one.get("writes"), bool):
        return {}
    opened, wrote, closed, hand_over, wait = (_number(one.get(key)) for key in TIMES)
    return {"role": "writer" if one["writes"] else "worker", "begin_ns": int(one["begin_ns"]),
            "file_s": opened + wrote + closed, "hand_over_s": hand_over, "wait_s": wait}


def in_order(events: list[dict]) -> list[dict]:
    """The events with what is missing, in order of time: `captured` is when the last rank computed
    again, not when rank 0 was told.
    """
    made, bytes_of, begun_ns = [], {}, {}
    for event in events:
        kind, run = event["event"], event["run"]
        if kind == "captured":
            bytes_of[event["version"]] = event["bytes"]
            ends = [one["end_ns"] for one in event["ranks"] if of(one)]
            event = {**event, "t_ns": int(min([event["t_ns"], max(ends, default=event["t_ns"])]))}
        elif kind == "restart_begin":
            begun_ns[run] = event["t_ns"]
        elif kind == "restored":
            took_ns = event["t_ns"] - begun_ns.get(run, event["t_ns"])
            event = {"bytes": bytes_of.get(event["version"], 0), "seconds": took_ns / 1e9, **event}
        elif kind == "restart_failed":
            event = {"version": max(bytes_of, default=0), **event}
        made.append(event)
    return sorted(made, key=lambda event: event["t_ns"])
