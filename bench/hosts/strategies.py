"""Where a checkpoint goes, and what that costs a computing program: paper 002 Figs. 4, 8 and 10 to
13 at this size.

A round: steps without a checkpoint, then one checkpoint and the same steps, and more where its data
is not safe yet. Overhead: what the second part took beyond as many undisturbed steps, blocked time
included, of the time of the first part.
"""

import re
import sys
import textwrap
from pathlib import Path

from . import job, protections
from .mini import Failed
from .numbers import Samples

SERVER = Path(__file__).with_name("server.py")
PORT = 9000
SHARED = "/mnt/shared"


class Strategy:
    """`key` in the JSON, `text` in tables; `program` and `set_to` are what job.run() gets."""

    def __init__(self, key, text, program, set_to=None, over_network=True):
        self.key, self.text, self.program, self.set_to = key, text, program, set_to or {}
        self.over_network = over_network  # a second network makes a difference

    @classmethod
    def of(cls, protection):
        return cls(protection.key, protection.text, {"level": protection.level}, protection.set_to)


def all_of(hosts):
    """In the order of the table. `hosts` of the job; the server is one more."""
    backstay = protections.none().set_to
    yield Strategy("server", "one central checkpoint server", {"way": "server"})
    yield Strategy("shared", "shared storage directly",
                   {"way": "shared", "target": f"{SHARED}/direct"}, over_network=False)
    yield Strategy("serialised", "shared storage, one node after the other", {"level": job.DURABLE},
                   backstay | {"durable_dir": f"{SHARED}/durable", "drain_nodes_max": 1},
                   over_network=False)
    yield Strategy("local", "own disk only", {"level": job.LOCAL}, backstay, over_network=False)
    for replicas in range(1, min(4, hosts - 1) + 1):
        yield Strategy.of(protections.replicas(replicas))
    for shape in protections.fitting(hosts) or [f"{hosts - 1},1"]:
        yield Strategy.of(protections.parity(shape))


def start_server(cluster, host):
    server = cluster.start("exec", host, "--", sys.executable, SERVER, PORT, "/mnt/local/server")
    if server.stdout.readline().strip() != "ready":
        raise Failed(f"the checkpoint server does not start: {cluster.finish(server)}")


def measure(cluster, options, say):
    hosts, server = options.hosts, options.server
    start_server(cluster, server)
    cluster.on(hosts[0], f"mkdir -p -m 700 {SHARED}/durable {SHARED}/direct")
    cluster("slow-shared", f"{options.shared_mb_s}M")
    result = {"bytes_per_node": options.mib << 20, "steps": options.steps, "strategies": {}}
    for strategy in all_of(len(hosts)):
        for network in (0, 1):
            if network not in options.networks or (network and not strategy.over_network):
                continue
            if options.only and strategy.key not in options.only:
                continue
            say(f"{strategy.text}, {'second' if network else 'one'} network")
            one = measure_one(cluster, options, strategy, network)
            result["strategies"].setdefault(strategy.key,
                                            {"text": strategy.text})[("one_network",
                                                "second_network")[network]] = one
    cluster("slow-shared", "off")
    return result


def measure_one(cluster, options, strategy, network):
    device = ("eth0", "eth1")[network]
    target = {"target": f"{options.server}{'-net1' if network else ''}:{PORT}"} if strategy.key == "server" else {}
    rounds = job.run(cluster, options.build, options.hosts, rounds=options.repetitions + 1,
                     steps=options.steps, mib=options.mib,
                     work_us=options.work_us, idle_us=options.idle_us, halo_kib=options.halo_kib,
                     pool_mib=3 * options.mib,
                     set_to={"network_device": device, **strategy.set_to, **dict(options.set)},
                     **strategy.program, **target)
    cluster.forget_versions(options.hosts)
    samples = Samples()
    for one in rounds[1:]:  # the first checkpoint of a session touches memory
        undisturbed_s = one["base_s"] / one["base_steps"] * one["with_steps"]
        overhead_s = one["blocked_s"] + one["with_s"] - undisturbed_s
        samples.add("overhead_percent", 100 * overhead_s / one["base_s"])
        samples.add("overhead_s", overhead_s)
        samples.add("blocked_s", one["blocked_s"])
        samples.add("safe_s", one["blocked_s"] + one["level_s"])
        samples.add("base_s", one["base_s"])
    result = {}
    samples.write_to(result)
    return result


HEAD = ("one checkpoint", "program waits, s", "safe after, s", "overhead, s", "overhead, %",
        "%, second network")


def rows(result):
    for one in result["strategies"].values():
        first, second = one.get("one_network"), one.get("second_network")
        shown = first or second
        yield (one["text"], f"{shown['blocked_s']:.2f}", f"{shown['safe_s']:.2f}",
               f"{shown['overhead_s']:.2f}",
               f"{first['overhead_percent']:.0f}" if first else "",
               f"{second['overhead_percent']:.0f}" if second else "")


def wrapped(text):
    """A row's name below its bars; the text in brackets stays together."""
    kept = re.sub(r"\(.*?\)", lambda found: found[0].replace(" ", "\xa0"), text)
    return textwrap.fill(kept, 12, break_long_words=False)


def draw(result, sentence, path):
    """Bars, as the paper's: overhead in %, a pair for each strategy."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    import matplotlib
    from backstay.plan.figures import style

    with matplotlib.rc_context(style.RULES):
        figure, axes = style.canvas("What one checkpoint costs a computing program", "",
                                    "overhead (% of the run without)", (10.0, 5.6))
        shown = list(result["strategies"].values())
        for number, (key,
                     label) in enumerate((("one_network", "one network"),
                                          ("second_network", "agents on a second network"))):
            at = [place + 0.4 * number - 0.2 for place, one in enumerate(shown) if key in one]
            height = [one[key]["overhead_percent"] for one in shown if key in one]
            bars = axes.bar(at, height, 0.38, color=style.COLOURS[number],
                            hatch=("", "//")[number], edgecolor="white", label=label)
            axes.bar_label(bars, fmt="%.0f", padding=2)
        axes.set_xticks(range(len(shown)), [wrapped(one["text"]) for one in shown], fontsize=10)
        axes.legend()
        style.note(figure, textwrap.fill(sentence, 130))
        figure.savefig(path)
