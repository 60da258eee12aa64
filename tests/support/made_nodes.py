"""Logs of a job on several nodes, as their agents write them: node 1 is lost in the first run, the
second one goes on without it.
"""

import json
import random

RANKS, BYTES, STEP_S, T0 = 2, 32 << 20, 10.0, 1_795_212_000.0  # ranks of a node, bytes of each
SLOW = 2  # the node whose disk is slow, and whose rank 0 waits long
FIRST, SECOND = 6, 4  # versions of each run
LOST_AT_S = 64.0


class Logs:
    """Lines of each host by name; `clocks`: how far ahead they are, in s."""

    def __init__(self, hosts: int, clocks=None, tell_hosts=True):
        self.names = [f"n{number}" for number in range(hosts)]
        self.clocks, self.tell_hosts = clocks or {}, tell_hosts
        self.lines: dict[str, list[str]] = {name: [] for name in self.names}

    def say(self, kind, at, run, number, by, **fields):
        t_ns = int((T0 + at + self.clocks.get(by, 0.0)) * 1e9)
        line = {"event": kind, "t_ns": t_ns, "job": "lj", "run": f"{run:016x}", "node": number,
                **fields}
        self.lines[by].append(json.dumps(line))

    def begin(self, at, run, hosts, newest=0):
        for number, host in enumerate(hosts):
            named = {"host": host} if self.tell_hosts else {}
            self.say("run_begin", at, run, number, host, ranks=RANKS * len(hosts),
                     nodes=len(hosts), newest=newest, release="0.1.0", **named)

    def capture(self, draw, at, run, hosts, version):
        """One version, from `at`. All receive level local once the last one has written it."""
        total, ends, written = RANKS * BYTES, [], []
        for number, host in enumerate(hosts):
            waits = [draw.uniform(0.02, 0.03) * (4 if host == f"n{SLOW}" and rank == 0 else 1)
                     for rank in range(RANKS)]
            self.say("capture_begin", at, run, number, host, version=version)
            begin = int((T0 + at + self.clocks.get(host, 0.0)) * 1e9)
            ranks = [{"rank": RANKS * number + rank, "bytes": BYTES, "begin_ns": begin,
                      "end_ns": begin + int(wait * 1e9)} for rank, wait in enumerate(waits)]
            ends.append(at + max(waits))
            self.say("captured", ends[-1], run, number, host, version=version, bytes=total,
                     chunks=16, seconds=max(waits), ranks=ranks)
            written.append(ends[-1] + (1.0 if host == f"n{SLOW}" else 0.25) + draw.uniform(0, 0.05))
            self.say("written", written[-1], run, number, host, version=version, bytes=total,
                     seconds=written[-1] - ends[-1])
        for number, host in enumerate(hosts):
            local = max(written) + draw.uniform(0.001, 0.01)
            self.say("local", local, run, number, host, version=version, bytes=total,
                     seconds=local - ends[number])
            self.say("protected", max(written) + 0.7 + draw.uniform(0.001, 0.01), run, number,
                     host, version=version)


def made(hosts=4, clocks=None, seed=5, tell_hosts=True) -> Logs:
    draw, logs = random.Random(seed), Logs(hosts, clocks, tell_hosts)
    names = logs.names
    logs.begin(0.0, 1, names)
    for version in range(1, FIRST + 1):
        logs.capture(draw, STEP_S * version, 1, names, version)
    left = [name for name in names if name != "n1"]
    for order, host in enumerate(left):  # n0 for a moment, as a cable was cut; n1 for good
        logs.say("nodes_lost", 31.0 + 0.6 * order / hosts, 1, names.index(host), host,
                 nodes=[hosts - 1] if host != names[-1] else [0])
        logs.say("nodes_back", 33.0 + 0.6 * order / hosts, 1, names.index(host), host,
                 nodes=[hosts - 1] if host != names[-1] else [0])
        logs.say("nodes_lost", LOST_AT_S + 0.3 * order / hosts, 1, names.index(host), host,
                 nodes=[1])
        logs.say("reprotect_begin", LOST_AT_S + 0.2, 1, names.index(host), host, version=FIRST,
                 of=names.index(host), left=1)
        logs.say("reprotected", LOST_AT_S + 1 + order / hosts, 1, names.index(host), host,
                 version=FIRST, of=names.index(host), bytes=RANKS * BYTES,
                 seconds=0.8 + order / hosts)
        for rank in range(RANKS):
            logs.say("rank_left", LOST_AT_S + 3, 1, names.index(host), host,
                     rank=RANKS * names.index(host) + rank, lost=True)
    again = left[::-1]  # other numbers
    logs.begin(80.0, 2, again, FIRST)
    for number, host in enumerate(again):
        logs.say("restart_begin", 80.5, 2, number, host, version=FIRST,
                 **{"from": "replica" if number == 0 else "local"})
        logs.say("restored", 81.0 + 0.4 * number / hosts, 2, number, host, version=FIRST,
                 bytes=RANKS * BYTES, seconds=0.5 + 0.4 * number / hosts,
                 **{"from": "replica" if number == 0 else "local"})
    for version in range(FIRST + 1, FIRST + SECOND + 1):
        logs.capture(draw, 80 + STEP_S * (version - FIRST), 2, again, version)
    logs.say("protect_failed", 125.0, 2, 0, again[0], version=FIRST + SECOND, of=0,
             code="few_nodes", why="0 of 1 copies on other nodes")
    logs.say("repaired", 126.0, 2, 1, again[1], version=FIRST + SECOND, of=0)
    return logs


def write(folder, logs: Logs):
    """A file a node, as the guide says to copy them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in logs.lines.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines),
                                              encoding="utf-8")
    return folder
