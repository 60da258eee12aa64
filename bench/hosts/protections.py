"""What can keep a version safe on other nodes: numbers of replicas, shapes of parity. With its
settings, and what it moves.
"""

import re

from . import job

REPLICAS = [1, 2]
SHAPES = ["3,1", "2,2"]


class Protection:
    """`key` in the JSON, `text` in tables; each node sends `moved` times its data, which as many
    streams as `peers` would carry in its place; `streams`: plain ones to others meanwhile.
    """

    def __init__(self, key, text, moved, set_to, peers=0, streams=0):
        self.key, self.text, self.moved, self.peers, self.streams = key, text, moved, peers, streams
        self.set_to = {"protect_replicas": 0} | set_to
        self.level = job.PROTECTED if moved else job.LOCAL


def none():
    return Protection("none", "none (local only)", 0, {})


def plain_streams(count):
    """Nothing on other nodes; something else than Backstay loads links and processors as copying
    would.
    """
    return Protection(f"streams_{count}",
                      f"none; {count} plain TCP stream{'s' if count > 1 else ''} from each host "
                      f"meanwhile", 0, {}, streams=count)


def replicas(count):
    return Protection(f"replicas_{count}", f"{count} replica{'s' if count > 1 else ''}", count,
                      {"protect_replicas": count}, peers=count)


def parity(shape):
    """`shape`: "k,m". Each node pulls k blocks of data and m - 1 of parity, of a k-th of its data
    each (docs/protocol/parity.md).
    """
    k, m = (int(number) for number in shape.split(","))
    return Protection(f"parity_{k}_{m}", f"parity ({k}, {m})", (k + m - 1) / k,
                      {"protect_parity": shape}, peers=m)


def add_options(parser):
    parser.add_argument("--replicas", type=int, action="append",
                        help=f"numbers of replicas (default: {REPLICAS})")
    parser.add_argument("--parity", action="append", metavar="K,M",
                        help=f"shapes of parity (default: {SHAPES})")


def members(shape):
    return sum(int(number) for number in shape.split(","))


def fitting(hosts):
    """Shapes of SHAPES that this many hosts can have."""
    return [shape for shape in SHAPES if members(shape) <= hosts]


def check(options, parser):
    """What was asked for and cannot be."""
    for count in options.replicas or []:
        if not 0 < count < options.host_count:
            parser.error(f"--replicas {count}: 1 to {options.host_count - 1} on "
                         f"{options.host_count} hosts")
    for shape in options.parity or []:
        if not re.fullmatch(r"[1-9][0-9]*,[1-4]", shape) or members(shape) > options.host_count:
            parser.error(f"--parity {shape}: k,m with m from 1 to 4, at most {options.host_count} "
                         f"together")


def all_of(options):
    counts = options.replicas or [count for count in REPLICAS if count < options.host_count]
    return [*map(replicas, counts), *map(parity, options.parity or fitting(options.host_count))]
