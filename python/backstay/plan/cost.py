"""Price of keeping checkpoints: local disks with replicas or parity against a shared system.
docs/plan/cost.md.

Source: paper 002, § 5.6. Prices in any one currency; sizes in B; energy as a price a year. Raise
PlanError for values out of range. The presets are in prices.toml.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from . import tables
from .check import PlanError, count, fraction, not_negative, positive


def local_cost(nodes, disk_price, disks_per_node, controller_price=0.0, years=0.0,
               energy_price_per_year=0.0):
    """Disks and controller for every node, and `years` of the energy of a node's disks."""
    node = count("disks_per_node", disks_per_node) * positive("disk_price", disk_price)
    node = node + not_negative("controller_price", controller_price)
    energy = not_negative("years", years) * not_negative("energy_price_per_year",
        energy_price_per_year)
    return (count("nodes", nodes) * (node + energy))[()]


def stored_per_byte(replicas=0, parity_data=None, parity=0):
    """Bytes stored for a byte saved, the local copy included: 1 + r, or 1 + m/k with parity of k +
    m.
    """
    if parity_data is not None:
        return (1 + count("parity", parity) / count("parity_data", parity_data))[()]
    return (1 + count("replicas", replicas, 0))[()]


def local_bytes(nodes, disks_per_node, disk_bytes, usable_fraction=1.0):
    """Usable size of all nodes' disks together, in B; ½ is usable of mirrored ones."""
    disks = count("nodes", nodes) * count("disks_per_node", disks_per_node)
    return (disks * positive("disk_bytes", disk_bytes) * fraction("usable_fraction",
        usable_fraction, zero=False))[()]


def shared_systems(shared_bytes, needed_bytes=None):
    """How many shared systems: one, or as many as `needed_bytes` need."""
    size = positive("shared_bytes", shared_bytes)
    return (np.ones_like(size) if needed_bytes is None
            else np.ceil(positive("needed_bytes", needed_bytes) / size))[()]


def shared_cost(price, years=0.0, energy_price_per_year=0.0, systems=1):
    """Price of `systems` shared systems with `years` of their energy."""
    energy = not_negative("years", years) * not_negative("energy_price_per_year",
        energy_price_per_year)
    return (count("systems", systems) * (positive("price", price) + energy))[()]


# Prices in files
# --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Local:
    """Disks of a node."""

    name: str
    disk_price: float
    disk_bytes: float
    disks_per_node: int = 1
    usable_fraction: float = 1.0
    controller_price: float = 0.0
    energy_price_per_year: float = 0.0
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Shared:
    """A SAN or parallel file system."""

    name: str
    price: float
    shared_bytes: float
    energy_price_per_year: float = 0.0
    source: str = ""


_KINDS = {"local": Local, "shared": Shared}
_TYPES = {"source": "text", "kind": "text", "disks_per_node": "whole",
          "usable_fraction": "fraction",
          "controller_price": "not_negative", "energy_price_per_year": "not_negative"}  # fmt: skip
_KEYS = {one.name: _TYPES.get(one.name, "positive") for kind in _KINDS.values() for one
         in dataclasses.fields(kind)}
_KEYS = {key: kind for key, kind in _KEYS.items() if key != "name"} | {"kind": "text"}


def parse(text: str, where: str, parameter: str = "prices_file") -> dict[str, Local | Shared]:
    """Prices of a TOML text. Raises PlanError naming `where`, line and key."""
    found = {}
    for name, table in tables.parse(text, where, parameter, _KEYS).items():
        line = tables.line_of(text, name)
        kind = _KINDS.get(table.pop("kind", None))
        if kind is None:
            raise PlanError(parameter, f'{where}:{line}: {name} needs kind = "local" or "shared"')
        known = {one.name: one for one in dataclasses.fields(kind) if one.name != "name"}
        for key in table:
            if key not in known:
                raise PlanError(
                    parameter,
                    f"{where}:{tables.line_of(text, name, key)}: {key} does not belong to this kind"
                )
        for key, one in known.items():
            if key not in table and one.default is dataclasses.MISSING:
                raise PlanError(parameter, f"{where}:{line}: {name} needs {key}")
        found[name] = kind(name=name, **table)
    return found


def prices(path=None) -> dict[str, Local | Shared]:
    """The paper's prices, and those of `path`, which win where names are the same. OSError if it
    cannot be read.
    """
    found = parse(tables.preset("prices.toml"), "prices.toml")
    if path is not None:
        found.update(parse(tables.read(path, "prices_file"), str(path)))
    return found


class Comparison(NamedTuple):
    """Costs in the currency of the prices, sizes in B; `room` is for checkpoints, their copies
    counted.
    """

    local_cost: float
    local_cost_per_node: float
    local_usable_bytes: float
    local_room_bytes: float
    local_cost_per_tb: float
    shared_cost: float
    shared_room_bytes: float
    shared_cost_per_tb: float
    local_over_shared: float


def compare(nodes: int, local: Local, shared: Shared, stored=1.0, years=0.0,
            same_room=False) -> Comparison:
    """Local disks of `nodes` against the shared system, or with `same_room` as many of them as hold
    as much.

    `stored`: bytes stored for a byte saved (`stored_per_byte`).
    """
    disks = local_cost(nodes, local.disk_price, local.disks_per_node, local.controller_price, years,
                       local.energy_price_per_year)  # fmt: skip
    usable = local_bytes(nodes, local.disks_per_node, local.disk_bytes, local.usable_fraction)
    room = usable / positive("stored", stored)
    systems = shared_systems(shared.shared_bytes, room if same_room else None)
    bought = shared_cost(shared.price, years, shared.energy_price_per_year, systems)
    shared_room = systems * shared.shared_bytes
    return Comparison(*map(float, (
        disks, disks / nodes, usable, room, disks / room * 1e12, bought, shared_room,
        bought / shared_room * 1e12,
        disks / bought)))  # fmt: skip
