"""What the event logs of a world say that programs wrote into captured files."""

import collections
import json
import sys

from processes import wait_for


def need(condition, what):
    if not condition:
        sys.exit(str(what))


class Sum:
    """Of all lines of the log."""

    def __init__(self, world):
        self.files, self.writes, self.calls = collections.Counter(), {}, collections.Counter()
        self.seconds, self.longest = collections.Counter(), collections.Counter()
        for log in world.folder.glob("versions/test.files.*/events.jsonl"):
            for line in log.read_text().splitlines():
                event = json.loads(line)
                if event["event"] == "files_written":
                    self.add(event)

    def add(self, event):
        for kind in ("captured", "direct", "real"):
            self.files[kind] += event[kind]["files"]
            self.files[kind + " bytes"] += event[kind]["bytes"]
        for one in event["writes"]:
            count, size = self.writes.get(one["below"], (0, 0))
            self.writes[one["below"]] = (count + one["writes"], size + one["bytes"])
            need(one["seconds"] > 0, f"no time: {one}")
        for one in event["waits"]:
            self.calls[one["call"]] += one["calls"]
            self.seconds[one["call"]] += one["seconds"]
            need(0 < one["longest"] <= one["seconds"], one)


def sum_with(world, closes, captured):
    """The sum, once it has so many calls of close and files in the pool: the agent writes the lines
    in the background.
    """
    def found():
        now = Sum(world)
        return now if now.calls["close"] >= closes and now.files["captured"] >= captured else None

    return wait_for(found, f"{closes} closes and {captured} files in the event log")
