"""An unmodified program that is saved again and again, for each place that its versions may go to
and for several intervals: paper 002 Figs. 3b, 8 and 10 with hpcc, at this size.

Overhead: what the run took longer than a native one, of the native one's time; the runs come in
turn, so that all see the same machine.
"""

from . import protections, unchanged
from .numbers import Samples


def all_of(hosts):
    """In the order of the table: with its protection, None where nothing is saved."""
    yield "unsaved", "saved never", None
    local = protections.none()
    yield "local", "own disk only", local
    for replicas in range(1, min(2, hosts - 1) + 1):
        one = protections.replicas(replicas)
        yield one.key, one.text, one
    for shape in protections.fitting(hosts) or [f"{hosts - 1},1"]:
        one = protections.parity(shape)
        yield one.key, one.text, one


def cases(options):
    for key, text, protection in all_of(len(options.hosts)):
        if options.only and key not in options.only:
            continue
        for interval in options.intervals if protection else [unchanged.NEVER]:
            yield key, text, interval, protection.set_to if protection else {"protect_replicas": 0}


def measure(cluster, options, say):
    hosts = options.hosts
    ranks = len(hosts) * options.ranks_per_host
    folder, words = unchanged.hpcc(cluster, hosts[0], ranks, options.size)
    result = {"ranks": ranks, "size": options.size, "intervals": options.intervals,
              "strategies": {}}
    samples = {"native": Samples()}
    for number in range(options.repetitions):
        say(f"hpcc, repetition {number + 1} of {options.repetitions}: natively")
        one = unchanged.run(cluster, options.build, hosts, ranks, folder, words)
        samples["native"].add("run_s", one.seconds)
        for key, text, interval, set_to in cases(options):
            say(f"{text}, every {interval} s")
            one = unchanged.run(cluster, options.build, hosts, ranks, folder, words, interval,
                                set_to | dict(options.set))
            unchanged.forget(cluster, hosts)
            take(samples.setdefault(f"{key} {interval}", Samples()), one, len(hosts))
    result["native"] = {}
    samples.pop("native").write_to(result["native"])
    for key, text, interval, _ in cases(options):
        one = {}
        samples[f"{key} {interval}"].write_to(one)
        one["overhead_percent"] = 100 * (one["run_s"] / result["native"]["run_s"] - 1)
        strategy = result["strategies"].setdefault(key, {"text": text, "intervals": {}})
        strategy["intervals"][str(interval)] = one
    return result


def take(samples, one, hosts):
    local = one.named("local")
    samples.add("run_s", one.seconds)
    samples.add("versions", len(local) / hosts)
    samples.add("bytes_per_node", sum(event["bytes"] for event in local) / max(1, len(local)))


HEAD = ("versions go to", "interval s", "versions", "MiB a node", "run s", "overhead %")


def rows(result):
    yield ("native", "", "", "", f"{result['native']['run_s']:.2f}", "")
    for one in result["strategies"].values():
        for interval, case in one["intervals"].items():
            never = interval == unchanged.NEVER
            yield (one["text"], "" if never else interval, f"{case['versions']:.0f}",
                   f"{case['bytes_per_node'] / (1 << 20):.0f}", f"{case['run_s']:.2f}",
                   f"{case['overhead_percent']:.1f}")
