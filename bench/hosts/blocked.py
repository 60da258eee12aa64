"""What a program feels: how long checkpoint() blocks it and how much its steps slow down, with
nothing on other nodes, with replicas and with parity.

A round: undisturbed steps; a checkpoint; a second one while the first is being protected; steps
until all is protected. Each comes twice, in mirrored order (none, streams, others; others, streams,
none), so that a drift of the machine falls on all.

All hosts share this machine's processors. What of it is theirs, and not Backstay's, is shown by the
same with nothing on other nodes while plain TCP streams, as many as copies are sent, fill the
links.
"""

from . import job, protections
from .numbers import Samples, ratio

PAIR = 5  # steps from the first checkpoint of a round to the second


def measure(cluster, options, say):
    others = protections.all_of(options)
    streams = [protections.plain_streams(count) for count in sorted({one.peers for one in others})]
    all_of = [protections.none(), *streams, *others]
    samples = Samples()
    for number, one in enumerate([*all_of, *reversed(all_of)]):
        say(f"blocked time, {number + 1} of {2 * len(all_of)}: {one.text}")
        with cluster.streaming(options.hosts, one.streams):
            rounds = job.run(cluster, options.build, options.hosts,
                             rounds=(options.repetitions + 1) // 2 + 1,
                             steps=options.steps, pair=PAIR, level=one.level,
                             mib=options.step_mib, work_us=options.work_us,
                             idle_us=options.idle_us, halo_kib=options.halo_kib,
                             pool_mib=4 * options.step_mib, device=options.device,
                             set_to={"network_device": options.device, **one.set_to,
                                     **dict(options.set)})
        cluster.forget_versions(options.hosts)
        for round_ in rounds[1:]:  # the first checkpoint of a session touches memory
            take(samples, one.key, round_)
    result = {"bytes_per_node": options.step_mib << 20, "steps": options.steps,
              "texts": {one.key: one.text for one in all_of}}
    samples.write_to(result)
    # The streams run during its quiet steps too: it is compared with the steps of `none`.
    for one in streams:
        del result["samples"][f"{one.key}_slow_down"]
        result[f"{one.key}_slow_down"] = result[f"{one.key}_step_during_s"] / result["none_step_s"]
    result["ratios"] = {}
    for one in others:
        for key in ("blocked_s", "blocked_again_s"):
            result["ratios"][f"{one.key}_{key.removesuffix('_s')}_over_local_only"] = ratio(
                result[f"{one.key}_{key}"], result[f"none_{key}"], 1.1)
        result["ratios"][f"{one.key}_blocked_again_over_streams"] = ratio(
            result[f"{one.key}_blocked_again_s"], result[f"streams_{one.peers}_blocked_again_s"],
            1.1)
    return result


def take(samples, prefix, one):
    samples.add(f"{prefix}_blocked_s", one["blocked_s"])
    samples.add(f"{prefix}_blocked_again_s", one["blocked_again_s"])
    samples.add(f"{prefix}_reduced_s", one["reduced_s"])
    samples.add(f"{prefix}_reduced_again_s", one["reduced_again_s"])
    samples.add(f"{prefix}_level_s", one["level_s"])
    samples.add(f"{prefix}_step_s", one["base_s"] / one["base_steps"])
    samples.add(f"{prefix}_step_during_s", one["during_s"] / one["during_steps"])
    samples.add(f"{prefix}_slow_down",
                one["during_s"] / one["during_steps"] / (one["base_s"] / one["base_steps"]))


HEAD = ("on other nodes", "blocked ms", "ratio",
        "blocked while the version before is protected, ms", "ratio", "to that with plain streams",
        "one number over all ranks meanwhile, ms", "step ms", "slow-down of steps meanwhile",
        "for s")


def rows(result):
    for prefix, text in result["texts"].items():
        ratios = [result["ratios"].get(f"{prefix}_{name}") for name in
                  ("blocked_over_local_only", "blocked_again_over_local_only",
                   "blocked_again_over_streams")]
        quiet, again, to_streams = [f"{one['value']:.2f}" if one else "" for one in ratios]
        milliseconds = {key: f"{1e3 * result[f'{prefix}_{key}_s']:.1f}" for key
                        in ("blocked", "blocked_again", "reduced_again", "step")}
        yield (text, milliseconds["blocked"], quiet, milliseconds["blocked_again"], again,
               to_streams, milliseconds["reduced_again"],
               milliseconds["step"], f"{result[f'{prefix}_slow_down']:.2f}",
               f"{result[f'{prefix}_level_s']:.2f}")
