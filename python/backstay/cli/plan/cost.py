"""`backstay plan cost`: local disks against shared storage."""

from typing import Annotated, Optional

import typer

from ...plan import cost, tables
from ...plan.check import PlanError, not_negative
from . import output
from .output import AsJson, percent, sized
from .survive import parse_parity

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan cost --nodes 1000 --years 3 --json\n"
    "  backstay plan cost --nodes 1000 --local sata-1tb-raid1 --shared high-end-san --replicas 2 --same-room\n"
    "  backstay plan cost --nodes 512 --local my-nvme --shared my-lustre --prices prices.toml --parity 14+2\n"
    "  backstay plan cost --list\n\n"
    f"{output.EXIT_CODES}"
)


def chosen(known, name: str, kind, parameter: str):
    fitting = {one.name: one for one in known.values() if isinstance(one, kind)}
    if name not in fitting:
        raise PlanError(parameter, f"{name} is not known{tables.nearest(name, fitting)}")
    return fitting[name]


def stored_of(replicas, parity) -> float:
    if parity is None:
        return float(cost.stored_per_byte(replicas or 0))
    if replicas is not None:
        raise PlanError("parity", "and --replicas cannot both be given")
    data, extra = parse_parity(parity)
    return float(cost.stored_per_byte(parity_data=data, parity=extra))


def money(value: float) -> str:
    return output.grouped(round(value))


def command(
    nodes: Annotated[Optional[int], typer.Option("--nodes", metavar="N", help="Nodes of the machine")] = None,
    local: Annotated[str, typer.Option("--local", metavar="NAME", help="Disks of a node")] = "sata-500gb-raid1",
    shared: Annotated[str, typer.Option("--shared", metavar="NAME", help="SAN or file system")] = "mid-range-san",
    replicas: Annotated[Optional[int], typer.Option("--replicas", metavar="R", help="Replicas on other nodes")] = None,
    parity: Annotated[Optional[str], typer.Option("--parity", metavar="K+M", help="Parity groups instead")] = None,
    years: Annotated[float, typer.Option("--years", metavar="Y", help="Years of energy to count")] = 0.0,
    checkpoint_bytes: Annotated[
        Optional[float], typer.Option("--checkpoint", metavar="BYTES", help="Of the whole job: how many fit")
    ] = None,
    same_room: Annotated[bool, typer.Option("--same-room", help="As many shared systems as hold as much")] = False,
    prices_file: Annotated[
        Optional[str], typer.Option("--prices", metavar="FILE", help="TOML file of more prices")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the prices")] = False,
    as_json: AsJson = False,
) -> None:
    """What it costs: local disks or shared storage.

    Paper 002, § 5.6: disks in every node, protected by replicas or parity, against a SAN or parallel file system.
    """
    known = cost.prices(prices_file)
    if show_list:
        rows = [{"name": one.name, "kind": type(one).__name__.lower(), "source": one.source} for one in known.values()]
        return output.show(
            {"prices": rows}, [(row["name"], f"{row['kind']}; {row['source']}") for row in rows], as_json
        )
    if nodes is None:
        raise PlanError("nodes", "must be given; --list shows the prices")
    disks, system = chosen(known, local, cost.Local, "local"), chosen(known, shared, cost.Shared, "shared")
    stored = stored_of(replicas, parity)
    usable = float(cost.local_bytes(nodes, disks.disks_per_node, disks.disk_bytes, disks.usable_fraction))
    room = usable / stored
    local_price = float(cost.local_cost(
        nodes, disks.disk_price, disks.disks_per_node, disks.controller_price, not_negative("years", years),
        disks.energy_price_per_year))  # fmt: skip
    needed = room if same_room else None
    shared_price = float(
        cost.shared_cost(system.price, years, system.energy_price_per_year, system.shared_bytes, needed)
    )
    shared_room = (
        system.shared_bytes * shared_price / float(cost.shared_cost(system.price, years, system.energy_price_per_year))
    )
    result = {
        "nodes": nodes, "local": disks.name, "shared": system.name, "years": years, "stored_per_byte": stored,
        "local_cost": local_price, "local_cost_per_node": local_price / nodes, "local_usable_bytes": usable,
        "local_room_bytes": room, "shared_cost": shared_price, "shared_room_bytes": shared_room,
        "local_over_shared": local_price / shared_price, "local_cost_per_tb": local_price / room * 1e12,
        "shared_cost_per_tb": shared_price / shared_room * 1e12,
    }  # fmt: skip
    lines = [
        (f"{disks.name}, {output.grouped(nodes)} nodes", money(local_price)),
        ("  a node", money(local_price / nodes)),
        ("  room for checkpoints", f"{sized(room)}, each stored {output.number(stored, 3)} times"),
        ("  a TB of checkpoints", money(result["local_cost_per_tb"])),
        (system.name, money(shared_price)),
        ("  room for checkpoints", sized(shared_room)),
        ("  a TB of checkpoints", money(result["shared_cost_per_tb"])),
        ("local / shared", percent(result["local_over_shared"])),
    ]
    if checkpoint_bytes is not None:
        size = float(cost.positive("checkpoint_bytes", checkpoint_bytes))
        result.update(local_versions=int(room // size), shared_versions=int(shared_room // size))
        lines.append(("versions that fit", f"{result['local_versions']} local, {result['shared_versions']} shared"))
    output.show(result, lines, as_json)
