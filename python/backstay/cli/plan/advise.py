"""`backstay plan advise`: what to configure on this machine."""

import json
import os
import pathlib
from typing import Annotated, Optional

import typer

from ...plan.check import PlanError, positive
from . import output
from .output import AsJson, grouped, number, percent, seconds, sized

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan advise --nodes 512 --saved 64e9 --storage-bandwidth 100e9 --mtti 86400 --copy-bandwidth 10e9 "
    "--disk-bandwidth 2e9 --network-bandwidth 12e9\n"
    "  backstay plan advise --nodes 64 --saved 16e9 --storage-bandwidth 10e9 --mtti 43200 --copy-bandwidth 5e9 "
    "--disk-bandwidth 1e9 --network-bandwidth 3e9 --json\n"
    "  backstay probe; backstay plan advise --nodes 64 --saved 16e9 --storage-bandwidth 10e9 --trace failures.csv\n\n"
    f"{output.EXIT_CODES}"
)
MEASURED = {"copy_bytes_per_s": ("memory", "copy_bytes_per_s"), "disk_bytes_per_s": ("disk", "write_bytes_per_s")}


def probe_path() -> pathlib.Path:
    """Where `backstay probe` keeps its result."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "backstay" / "probe.json"


def measured(path: Optional[str]) -> dict:
    """Bandwidths of `backstay probe`; none if it was not asked for and never ran. PlanError if it is not its result."""
    file = pathlib.Path(path) if path else probe_path()
    if not path and not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text("utf-8"))
        # The probe's network is this machine's loopback: it says nothing about the wire between nodes.
        return {name: float(positive(name, found[part][key])) for name, (part, key) in MEASURED.items()}
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise PlanError("probe", f"{file}: not a result of `backstay probe`; run it again") from None


def rate(name: str, given: Optional[float], probed: dict) -> float:
    value = given if given is not None else probed.get(name)
    if value is None:
        hint = ", or run `backstay probe`" if name in MEASURED else ""
        raise PlanError(name, f"must be given{hint}")
    return value


def failures_of(trace, system, window_s, mtti_s, software_share):
    """(Failures, notes) of a log, or of --mtti with assumed sizes."""
    from ...plan.simulate import advise
    from ...plan.traces import read, statistics

    if (trace is None) == (mtti_s is None):
        raise PlanError("mtti_s", "or --trace must be given, one of them")
    if trace is None:
        if system is not None:
            raise PlanError("system", "belongs to --trace")
        note = "assumed: 96 % of the failures take one node, 3 % two, 1 % eight; --trace reads a log"
        return advise.Failures(mtti_s, software_share=software_share), [note]
    log = read.log(trace, system)
    found = statistics.incidents(log, window_s)
    gaps = statistics.gaps_s(found)
    sizes = {int(size): float((found.nodes == size).mean()) for size in sorted(set(found.nodes.tolist()))}
    return advise.Failures(float(gaps.mean()), statistics.weibull(gaps).shape, sizes, software_share), list(log.notes)


def command(
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="Nodes of the job")],
    saved_bytes: Annotated[float, typer.Option("--saved", metavar="B", help="What one node saves, B")],
    storage_bytes_per_s: Annotated[
        float, typer.Option("--storage-bandwidth", metavar="B/S", help="Of all shared storage, B/s")
    ],
    mtti_s: Annotated[Optional[float], typer.Option("--mtti", metavar="S", help="Of the whole job, s")] = None,
    trace: Annotated[Optional[str], typer.Option("--trace", metavar="FILE", help="Failure log instead")] = None,
    system: Annotated[Optional[str], typer.Option("--system", metavar="N", help="Which one, of the log")] = None,
    window_s: Annotated[float, typer.Option("--window", metavar="S", help="Of an incident of the log, s")] = 60.0,
    software_share: Annotated[
        float, typer.Option("--software-share", metavar="X", help="Share of failures that leave all nodes up")
    ] = 0.0,
    probe: Annotated[
        Optional[str], typer.Option("--probe", metavar="FILE", help="Of `backstay probe --json`; default: its last")
    ] = None,
    copy_bytes_per_s: Annotated[
        Optional[float], typer.Option("--copy-bandwidth", metavar="B/S", help="Memory of a node, B/s")
    ] = None,
    disk_bytes_per_s: Annotated[
        Optional[float], typer.Option("--disk-bandwidth", metavar="B/S", help="Local disk of a node, B/s")
    ] = None,
    network_bytes_per_s: Annotated[
        Optional[float], typer.Option("--network-bandwidth", metavar="B/S", help="Of a node, B/s")
    ] = None,
    stage_memory_bytes: Annotated[
        float, typer.Option("--stage-memory", metavar="B", help="Of one stage node, B", show_default="256e9")
    ] = 256e9,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of the simulation")] = 1,
    as_json: AsJson = False,
) -> None:
    """What to configure: interval, protection, stage nodes.

    From what was measured (`backstay probe`, or the bandwidths given) and a failure log or a mean time to interrupt. The
    efficiency is that of jobs played through.
    """
    from ...plan.simulate import advise

    known, notes = failures_of(trace, system, window_s, mtti_s, software_share)
    probed = measured(probe)
    machine = advise.Machine(
        nodes, saved_bytes, rate("copy_bytes_per_s", copy_bytes_per_s, probed),
        rate("disk_bytes_per_s", disk_bytes_per_s, probed), rate("network_bytes_per_s", network_bytes_per_s, probed),
        storage_bytes_per_s, stage_memory_bytes,
    )  # fmt: skip
    plan = advise.advise(machine, known, seed)
    lost_hours = 24 * nodes * (1 - plan.efficiency.mean)
    result = {
        "machine": machine._asdict(), "mtti_s": known.mtti_s, "weibull_shape": known.shape,
        "interval_s": {"local": plan.interval_s, "protected": plan.interval_s,
                       "durable": plan.interval_s * plan.durable_every},
        "blocked_s": plan.blocked_s, "reached_s": dict(zip(("local", "protected", "durable"), plan.lag_s, strict=True)),
        "protection": plan.choice.name, "unprotected_share": plan.choice.lost_share, "stage_nodes": plan.stage_nodes,
        "efficiency": plan.efficiency._asdict(), "lost_node_hours_per_day": lost_hours,
        "local_store_bytes": plan.store_bytes, "toml": toml(plan, known),
    }  # fmt: skip
    output.show(result, lines(result), as_json, notes)
    if not as_json:
        print(result["toml"], end="")


def toml(plan, known) -> str:
    """Keys of docs/guide/configuration.md. The interval is fixed: it may be longer than Daly's, for the drain."""
    return (
        f'# backstay.toml\n[checkpoint]\npolicy = "interval"\ninterval_s = {plan.interval_s:.0f}\nmtti_s = {known.mtti_s:.0f}\n'
        "[storage]\nkeep = 2\n"
    )


def lines(result) -> list[tuple[str, str]]:
    reached, every = result["reached_s"], result["interval_s"]
    return [
        ("save", f"every {seconds(every['local'])}; each stops the job for {number(result['blocked_s'])} s"),
        ("local after", seconds(reached["local"])),
        ("protected after", f"{seconds(reached['protected'])}, with {result['protection']}"),
        ("durable", f"every {seconds(every['durable'])}, after {seconds(reached['durable'])}"),
        ("needs durable", f"{percent(result['unprotected_share'])} of the failures"),
        ("stage nodes", f"{grouped(result['stage_nodes'])} would hold one version"),
        ("efficiency", f"{percent(result['efficiency']['mean'])} (between {percent(result['efficiency']['low'])} and "
                       f"{percent(result['efficiency']['high'])})"),
        ("costs", f"{number(result['lost_node_hours_per_day'])} node-hours a day, {sized(result['local_store_bytes'])} "
                  "of each node's disk"),
    ]  # fmt: skip
