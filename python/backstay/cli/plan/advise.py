"""`backstay plan advise`: what to configure on this machine."""

import dataclasses
import math
import pathlib
from typing import Annotated, Optional

import typer

from ...plan import cost, files
from ...plan.check import PlanError
from ...plan.words import grouped
from ..pictures import needs
from . import advise_inputs as inputs
from . import output
from .cost import chosen, money
from .output import AsJson, number, percent, seconds, sized

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan advise --nodes 512 --saved 64e9 --storage-bandwidth 100e9 --mtti 86400 "
    "--copy-bandwidth 10e9 "
    "--disk-bandwidth 2e9 --network-bandwidth 12e9\n"
    "  backstay plan advise --nodes 64 --saved 16e9 --storage-bandwidth 10e9 --mtti 43200 "
    "--copy-bandwidth 5e9 "
    "--disk-bandwidth 1e9 --network-bandwidth 3e9 --picture advice.png\n"
    "  backstay probe; backstay plan advise --nodes 64 --saved 16e9 --storage-bandwidth 10e9 "
    "--network-bandwidth 3e9 --trace failures.csv\n"
    "  backstay plan advise --job lj --nodes 64 --storage-bandwidth 10e9 --network-bandwidth 3e9 "
    "--mtti 43200\n\n"
    f"{output.EXIT_CODES}"
)
LEVELS = ("local", "protected", "durable")
PICTURES = (".png", ".svg")


def command(
    nodes: Annotated[int,
                     typer.Option("--nodes", parser=output.whole_number, metavar="N",
                                  help="Nodes of the job")],
    storage_bytes_per_s: Annotated[
        float, typer.Option("--storage-bandwidth", metavar="B/S", help="Of all shared storage, B/s")
    ],
    saved_bytes: Annotated[Optional[float],
                           typer.Option("--saved", metavar="B",
                                        help="What one node saves, B")] = None,
    mtti_s: Annotated[Optional[float],
                      typer.Option("--mtti", metavar="S", help="Of the whole job, s")] = None,
    trace: Annotated[Optional[str],
                     typer.Option("--trace", metavar="FILE", help="Failure log instead")] = None,
    system: Annotated[Optional[str],
                      typer.Option("--system", metavar="N", help="Which one, of the log")] = None,
    window_s: Annotated[float,
                        typer.Option("--window", metavar="S",
                                     help="Of an incident of the log, s")] = 60.0,
    software_share: Annotated[
        float, typer.Option("--software-share", metavar="X", help="Share of failures that leave "
                                                                  "all nodes up")
    ] = 0.0,
    job: Annotated[
        Optional[str],
        typer.Option("--job", metavar="JOB", help="Measured by this job's versions (its event log)")
    ] = None,
    directory: Annotated[
        Optional[str],
        typer.Option("--dir", metavar="DIR", help="Folder of the job's versions (storage.dir)")
    ] = None,
    probe: Annotated[
        Optional[str],
        typer.Option("--probe", metavar="FILE",
                     help="Of `backstay probe --json`; default: its last")
    ] = None,
    copy_bytes_per_s: Annotated[
        Optional[float],
        typer.Option("--copy-bandwidth", metavar="B/S", help="Memory of a node, B/s")
    ] = None,
    disk_bytes_per_s: Annotated[
        Optional[float],
        typer.Option("--disk-bandwidth", metavar="B/S", help="Local disk of a node, B/s")
    ] = None,
    network_bytes_per_s: Annotated[
        Optional[float], typer.Option("--network-bandwidth", metavar="B/S", help="Of a node, B/s")
    ] = None,
    stage_memory_bytes: Annotated[
        float, typer.Option("--stage-memory", metavar="B", help="Of one stage node, B", show_default="256e9")
    ] = 256e9,
    local: Annotated[str,
                     typer.Option("--local", metavar="NAME",
                                  help="Price of disks")] = "sata-500gb-raid1",
    prices_file: Annotated[
        Optional[str],
        typer.Option("--prices", metavar="FILE", help="TOML file of more prices (plan cost)")
    ] = None,
    picture: Annotated[
        Optional[pathlib.Path],
        typer.Option("--picture", metavar="FILE", help="Draw it too: .png or .svg")
    ] = None,
    seed: Annotated[int,
                    typer.Option("--seed", parser=output.whole_number, metavar="S",
                                 help="Of the simulation")] = 1,
    as_json: AsJson = False,
) -> None:
    """What to configure: interval, protection, stage nodes.

    From what was measured (a job's versions, `backstay probe`, or the bandwidths given) and a
    failure log or a mean time to interrupt. The efficiency is that of jobs played through.
    """
    from ...plan.simulate import advise

    if picture is not None:
        if picture.suffix not in PICTURES:
            raise PlanError("picture", f"must end in {' or '.join(PICTURES)}, not {picture.name!r}")
        files.check(picture)
    disks = chosen(cost.prices(prices_file), local, cost.Local, "local")
    own, probed = inputs.of_job(job, directory), inputs.of_probe(probe)
    known, notes, rows = inputs.failures_of(trace, system, window_s, mtti_s, software_share, own,
                                            nodes)
    given = {"saved_bytes": saved_bytes, "copy_bytes_per_s": copy_bytes_per_s,
             "disk_bytes_per_s": disk_bytes_per_s,
             "network_bytes_per_s": network_bytes_per_s}  # fmt: skip
    rates = {name: inputs.value(name, one, own, probed) for name, one in given.items()}
    machine = advise.Machine(nodes=nodes, storage_bytes_per_s=storage_bytes_per_s, **rates)
    advice = advise.advise(machine, known, stage_memory_bytes, seed)
    result = result_of(machine, known, advice) | {"disks": disk_cost(machine, advice, disks)}
    if rows is not None:
        result["rows"] = rows
    if picture is not None:
        with needs("matplotlib", "backstay plan advise"):
            from ...plan import figures
            from ...plan.figures import advice as drawing
        figures.save(drawing.figure(machine, known, advice), picture)
        result["picture"] = str(picture)
    output.show(result, lines(result), as_json, [*notes, *own.notes, *outside(advice.plan, known)])
    if not as_json:
        output.say(result["toml"].rstrip())


def result_of(machine, known, advice) -> dict:
    plan = advice.plan
    return {
        "machine": machine._asdict(), "mtti_s": known.mtti_s, "weibull_shape": known.shape,
        "interval_s": {"local": plan.interval_s, "protected": plan.interval_s,
                       "durable": plan.interval_s * plan.durable_every},
        "blocked_s": plan.blocked_s, "reached_s": dict(zip(LEVELS, plan.lag_s, strict=True)),
        "restart_s": dict(zip(LEVELS, plan.restart_s, strict=True)), "protection": plan.choice.name,
        "unprotected_share": plan.choice.lost_share, "stage_nodes": advice.stage_nodes,
        "efficiency": advice.efficiency._asdict(),
        "lost_node_hours_per_day": 24 * machine.nodes * (1 - advice.efficiency.mean),
        "local_store_bytes": advice.store_bytes, "toml": toml(plan, known),
    }  # fmt: skip


def disk_cost(machine, advice, disks) -> dict:
    """As many of the listed disks in every node as hold the kept versions and what other nodes keep
    there.
    """
    sets = math.ceil(advice.store_bytes
                     / (disks.disks_per_node * disks.disk_bytes * disks.usable_fraction))
    if sets > 1000:
        raise PlanError("local",
                        f"{disks.name}: a node would need {sets} of them; name larger ones in "
                        f"--prices")
    bought = dataclasses.replace(disks, disks_per_node=sets * disks.disks_per_node,
                                 controller_price=sets * disks.controller_price)
    price = cost.local_cost(machine.nodes, bought.disk_price, bought.disks_per_node,
                            bought.controller_price)
    return {"name": disks.name, "source": disks.source, "sets_per_node": sets,
            "price": float(price)}


INTERVAL_RANGE_S, MTTI_RANGE_S = (0.001, 1e9), (1, 1e9)  # docs/guide/configuration.md


def outside(plan, known) -> list[str]:
    """Notes on what the configuration does not take as it is."""
    found = []
    for key, value, (low, high) in (("interval_s", plan.interval_s, INTERVAL_RANGE_S),
                                    ("mtti_s", known.mtti_s, MTTI_RANGE_S)):
        if not low <= value <= high:
            taken, what = (low, "least") if value < low else (high, "most")
            found.append(f"the configuration takes {taken:g} s at {what} for {key}: the TOML has "
                         f"that instead of {value:.4g} s")
    return found


def protection_key(name: str) -> str:
    """The two numbers of "2 replicas" or "parity 8+2"."""
    if name.startswith("parity "):
        return f'parity = "{name.removeprefix("parity ").replace("+", ",")}"'
    return f"replicas = {name.split()[0]}"


def toml(plan, known) -> str:
    """Keys of docs/guide/configuration.md, within their ranges; where shared storage is mounted
    only the user knows.

    The interval is fixed: it may be longer than Daly's, for the drain.
    """
    def within(value: float, low: float, high: float) -> str:
        return f"{min(max(value, low), high):.{0 if value >= 100 else 3}f}"

    return (
        f'# backstay.toml\n[checkpoint]\npolicy = "interval"\ninterval_s = '
        f'{within(plan.interval_s, *INTERVAL_RANGE_S)}\n'
        f"mtti_s = {within(known.mtti_s, *MTTI_RANGE_S)}\n[storage]\nkeep = 2\n"
        f"[protect]\n{protection_key(plan.choice.name)}\n"
        f'[durable]\nevery = {plan.durable_every}\n# dir = "/path/on/shared/storage"\n'
    )


def lines(result) -> list[tuple[str, str]]:
    reached, every, efficiency, disks = (result[name] for name in ("reached_s", "interval_s",
        "efficiency", "disks"))
    rows = [
        ("save", f"every {seconds(every['local'])}; each stops the job for "
                 f"{number(result['blocked_s'])} s"),
        ("local after", seconds(reached["local"])),
        ("protected after", f"{seconds(reached['protected'])}, with {result['protection']}"),
        ("durable", f"every {seconds(every['durable'])}, after {seconds(reached['durable'])}"),
        ("needs durable", f"{percent(result['unprotected_share'])} of the failures"),
        ("stage nodes", f"{grouped(result['stage_nodes'])} would hold one version"),
        ("efficiency",
         f"{percent(efficiency['mean'])} (between {percent(efficiency['low'])} and "
         f"{percent(efficiency['high'])})"),
        ("costs",
         f"{number(result['lost_node_hours_per_day'])} node-hours a day, "
         f"{sized(result['local_store_bytes'])} "
                  "of each node's disk"),
        ("disks", f"{money(disks['price'])} for {disks['sets_per_node']} × {disks['name']} a node"),
    ]  # fmt: skip
    return rows + ([("picture", result["picture"])] if "picture" in result else [])
