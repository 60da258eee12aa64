"""`backstay plan cost`: local disks against shared storage."""

from typing import Annotated, Optional

import typer

from ...plan import cost, tables
from ...plan.check import PlanError, positive
from ...plan.words import counted, grouped
from . import output
from .output import AsJson, percent, sized
from .survive import parse_parity

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan cost --nodes 1000 --years 3 --json\n"
    "  backstay plan cost --nodes 1000 --local sata-1tb-raid1 --shared high-end-san --replicas 2 "
    "--same-room\n"
    "  backstay plan cost --nodes 512 --local my-nvme --shared my-lustre --prices prices.toml "
    "--parity 14+2\n"
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


def check_fits(nodes: int, replicas, parity) -> None:
    """PlanError where the copies or the group need more nodes than there are."""
    if replicas is not None and replicas >= nodes:
        raise PlanError("replicas",
                        f"must be at most {nodes - 1}, not {replicas}: each copy needs another node")
    if parity is not None and (group := sum(parse_parity(parity))) > nodes:
        raise PlanError("parity", f"{parity}: a group needs {counted(group, 'node')}, not {nodes}")


def money(value: float) -> str:
    return grouped(round(value))


def command(
    nodes: Annotated[Optional[int],
                     typer.Option("--nodes", parser=output.whole_number, metavar="N",
                                  help="Nodes of the machine")] = None,
    local: Annotated[str,
                     typer.Option("--local", metavar="NAME",
                                  help="Disks of a node")] = "sata-500gb-raid1",
    shared: Annotated[str,
                      typer.Option("--shared", metavar="NAME",
                                   help="SAN or file system")] = "mid-range-san",
    replicas: Annotated[Optional[int],
                        typer.Option("--replicas", parser=output.whole_number, metavar="R",
                                     help="Replicas on other nodes")] = None,
    parity: Annotated[Optional[str],
                      typer.Option("--parity", metavar="K+M", help="Parity groups instead")] = None,
    years: Annotated[float,
                     typer.Option("--years", metavar="Y", help="Years of energy to count")] = 0.0,
    checkpoint_bytes: Annotated[
        Optional[float],
        typer.Option("--checkpoint", metavar="BYTES", help="Of the whole job: how many fit")
    ] = None,
    same_room: Annotated[bool,
                         typer.Option("--same-room",
                                      help="As many shared systems as hold as much")] = False,
    prices_file: Annotated[
        Optional[str], typer.Option("--prices", metavar="FILE", help="TOML file of more prices")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the prices")] = False,
    as_json: AsJson = False,
) -> None:
    """What it costs: local disks or shared storage.

    Paper 002, § 5.6: disks in every node, protected by replicas or parity, against a SAN or
    parallel file system.
    """
    known = cost.prices(prices_file)
    if show_list:
        return list_prices(known, as_json)
    if nodes is None:
        raise PlanError("nodes", "must be given; --list shows the prices")
    disks, system = chosen(known, local, cost.Local, "local"), chosen(known, shared, cost.Shared,
        "shared")
    stored = stored_of(replicas, parity)
    check_fits(nodes, replicas, parity)
    found = cost.compare(nodes, disks, system, stored, years, same_room)
    result = {"nodes": nodes, "local": disks.name, "shared": system.name, "years": years,
              "stored_per_byte": stored}
    result.update(found._asdict())
    rows = lines(disks, system, nodes, stored, found)
    if checkpoint_bytes is not None:
        size = float(positive("checkpoint_bytes", checkpoint_bytes))
        fit = {
            "local_versions": int(found.local_room_bytes // size),
            "shared_versions": int(found.shared_room_bytes // size),
        }
        result.update(fit)
        rows.append(("versions that fit",
                     f"{fit['local_versions']} local, {fit['shared_versions']} shared"))
    output.show(result, rows, as_json)


def list_prices(known, as_json) -> None:
    rows = [{"name": one.name, "kind": type(one).__name__.lower(), "source": one.source} for one
            in known.values()]
    output.show({"prices": rows},
                [(row["name"], f"{row['kind']}; {row['source']}") for row in rows], as_json)


def lines(disks, system, nodes, stored, found) -> list[tuple[str, str]]:
    return [
        (f"{disks.name}, {counted(nodes, 'node')}", money(found.local_cost)),
        ("  a node", money(found.local_cost_per_node)),
        ("  room for checkpoints",
         f"{sized(found.local_room_bytes)}, each stored {output.number(stored, 3)} times"),
        ("  a TB of checkpoints", money(found.local_cost_per_tb)),
        (system.name, money(found.shared_cost)),
        ("  room for checkpoints", sized(found.shared_room_bytes)),
        ("  a TB of checkpoints", money(found.shared_cost_per_tb)),
        ("local / shared", percent(found.local_over_shared)),
    ]
