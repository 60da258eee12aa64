"""Throughput of replication and of making parity, a node, against plain TCP streams between the
same hosts, in turn.

Timed from level local to level protected of all nodes; what a node had sent before (copying begins
when its own part is on its disk) is taken off. As many streams leave each host as it has copies, or
blocks of parity in a stripe, all at once; what a host sends by them until the last has ended is the
limit.
"""

from . import job, protections
from .numbers import Samples, ratio


def measure(cluster, options, say):
    samples, size = Samples(), options.mib << 20
    all_of = protections.all_of(options)
    for half in (1, 2):  # of the repetitions: each with a session, and streams, of its own
        for one in all_of:
            say(f"replication, half {half} of 2: {one.text}")
            samples.add(f"stream_{one.peers}_mb_s",
                        cluster.streams(options.hosts, max(32, options.mib // one.peers),
                                        one.peers))
            rounds = job.run(cluster, options.build, options.hosts,
                             rounds=(options.repetitions + 1) // 2 + 1, steps=0,
                             level=one.level, mib=options.mib, device=options.device,
                             pool_mib=2 * options.mib,
                             set_to={"network_device": options.device, **one.set_to,
                                     **dict(options.set)})
            cluster.forget_versions(options.hosts)
            for round_ in rounds[1:]:  # the first one touches memory and makes files
                take(samples, one.key, round_, one.moved * size)
    result = {"bytes_per_node": size, "texts": {one.key: one.text for one in all_of}}
    samples.write_to(result)
    result["ratios"] = {one.key: ratio(result[f"{one.key}_mb_s"],
                                       result[f"stream_{one.peers}_mb_s"], 0.9, at_least=True)
                        for one in all_of}
    return result


def take(samples, prefix, one, sent_bytes):
    copying_s = one["level_s"] - one["local_s"]
    samples.add(f"{prefix}_mb_s", (sent_bytes - one["sent_early_bytes"]) / copying_s / 1e6)
    samples.add(f"{prefix}_protected_s", one["level_s"])
    samples.add(f"{prefix}_local_s", one["local_s"])
    samples.add(f"{prefix}_early_bytes", one["sent_early_bytes"])


HEAD = ("copying and parity, MB/s a node", "ours", "plain streams", "ratio", "target",
        "captured to *protected*, s")


def rows(result):
    for key, one in result["ratios"].items():
        yield (result["texts"][key], f"{one['ours']:.1f}", f"{one['limit']:.1f}",
               f"{one['value']:.2f}", f"at least {one['target']:g}",
               f"{result[f'{key}_protected_s']:.2f}")
