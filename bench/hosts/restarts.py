"""Restart with none, one and two nodes lost beside a restart from the shared directory, as paper
002 Fig. 9.

One version is saved, with two replicas and on shared storage. A lost node loses power and disk, and
an empty one takes its place. Before each restart the agents are stopped and what the disks' files
have in memory is dropped. A time is that of backstay_restart() of the slowest rank; every byte is
compared afterwards. Limit of a lost node's data: a plain stream carries it over one link.
"""

from . import job
from .numbers import Samples, ratio


def lose_none(_cluster, _hosts):
    pass


def lose_one(cluster, hosts):
    cluster.lose(hosts[-1:])


def lose_two(cluster, hosts):
    cluster.lose(hosts[-2:])


def lose_all(cluster, hosts):
    cluster.on_all(hosts, "rm -rf /var/tmp/backstay-*")


SCENARIOS = {"lost_0": lose_none, "lost_1": lose_one, "lost_2": lose_two, "shared": lose_all}


def measure(cluster, options, say):
    node_bytes = options.mib << 20
    common = {"name": job.new_name(), "ranks_per_host": options.ranks_per_host,
              "mib": options.mib // options.ranks_per_host,
              "pool_mib": 2 * options.mib,
              "set_to": {"protect_replicas": 2, "durable_dir": "/mnt/shared/durable",
                         "network_device": options.device,
                         **dict(options.set)}}
    cluster.on(options.hosts[0], "mkdir -p -m 700 /mnt/shared/durable")
    say("restart: saves a version")
    job.run(cluster, options.build, options.hosts, rounds=1, steps=0, level=job.DURABLE, **common)
    cluster("slow-shared", f"{options.shared_mb_s}M")
    samples = Samples()
    for name, lose in SCENARIOS.items():
        for repetition in range(options.repetitions):
            say(f"restart, {name}, repetition {repetition + 1} of {options.repetitions}")
            cluster.stop_agents(options.hosts)
            lose(cluster, options.hosts)
            cluster.drop_caches()
            one = job.run(cluster, options.build, options.hosts, do="restart", **common)[-1]
            samples.add(f"{name}_s", one["restart_s"])
    say("restart: plain streams")
    stream = cluster.streams(options.hosts, max(32, options.mib // 2))
    cluster("slow-shared", "off")
    cluster.forget_versions(options.hosts)
    result = {"bytes_per_node": node_bytes, "shared_mb_s": options.shared_mb_s,
              "stream_mb_s": stream}
    samples.write_to(result)
    result["link_limit_s"] = node_bytes / result["stream_mb_s"] / 1e6
    result["shared_limit_s"] = len(options.hosts) * node_bytes / options.shared_mb_s / 1e6
    result["ratios"] = {f"{name}_over_shared": ratio(result[f"{name}_s"], result["shared_s"], 1)
                        for name in SCENARIOS
                        if name != "shared"}
    return result


HEAD = ("restart", "s", "limit s", "of a restart from the shared directory")


def rows(result):
    limits = {"lost_1": result["link_limit_s"], "lost_2": result["link_limit_s"],
              "shared": result["shared_limit_s"]}
    texts = {"lost_0": "no node lost, from the disks", "lost_1": "one node lost with its disk",
             "lost_2": "two nodes lost with their disks",
             "shared": "all disks lost, from the shared directory"}
    for name, text in texts.items():
        yield (text, f"{result[f'{name}_s']:.2f}", f"{limits[name]:.2f}" if name in limits else "",
               f"{result[f'{name}_s'] / result['shared_s']:.2f}")
