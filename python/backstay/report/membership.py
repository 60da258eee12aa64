"""Losses of nodes: each remaining node reports them by itself, and one loss counts once."""

import dataclasses

from .nodes import Names


@dataclasses.dataclass
class Loss:
    """Times in s since the first event. `told`: the nodes that reported it, the first one first."""

    node: str
    run: str
    at_s: float
    last_s: float  # when the last one missed it
    told: list[str]
    back_s: float | None = None  # when the first one heard from it again
    after_end: bool = False  # all ranks had ended their sessions: agents end by themselves then


def _ends(events: list[dict]) -> dict[str, int]:
    """When the last rank left, by run; of runs that lost none."""
    ends, broken = {}, set()
    for event in events:
        if event["event"] == "rank_left":
            ends[event["run"]] = event["t_ns"]
            if event["lost"]:
                broken.add(event["run"])
    return {run: at for run, at in ends.items() if run not in broken}


def losses(events: list[dict], names: Names) -> list[Loss]:
    """In order of time. `events` are in order of time."""
    open_losses: dict[tuple[str, int], Loss] = {}
    found, begin, ends = [], events[0]["t_ns"], _ends(events)
    for event in events:
        if event["event"] not in ("nodes_lost", "nodes_back"):
            continue
        run, at, teller = event["run"], (event["t_ns"] - begin) / 1e9, names.of(event["run"],
            event["node"])
        for number in event["nodes"]:
            loss = open_losses.get((run, number))
            if event["event"] == "nodes_back":
                if loss is not None and loss.back_s is None:
                    loss.back_s = at
            elif loss is None or loss.back_s is not None or teller in loss.told:
                loss = open_losses[run, number] = Loss(names.of(run, number), run, at, at, [teller])
                loss.after_end = run in ends and event["t_ns"] > ends[run]
                found.append(loss)
            else:
                loss.told.append(teller)
                loss.last_s = at
    return found
