"""Price of keeping checkpoints: local disks with replicas or parity against a shared system. docs/plan/cost.md.

Source: paper 002, § 5.6. Prices in any one currency; sizes in B; energy as a price a year. Raise PlanError for values
out of range. The presets are in prices.toml.
"""

import dataclasses

import numpy as np

from . import tables
from .check import PlanError, count, fraction, not_negative, positive


def local_cost(nodes, disk_price, disks_per_node, controller_price=0.0, years=0.0, energy_price_per_year=0.0):
    """Disks and controller for every node, and `years` of the energy of a node's disks."""
    node = count("disks_per_node", disks_per_node) * positive("disk_price", disk_price)
    node = node + not_negative("controller_price", controller_price)
    energy = not_negative("years", years) * not_negative("energy_price_per_year", energy_price_per_year)
    return (count("nodes", nodes) * (node + energy))[()]


def stored_per_byte(replicas=0, parity_data=None, parity=0):
    """Bytes stored for a byte saved, the local copy included: 1 + r, or 1 + m/k with parity of k + m."""
    if parity_data is not None:
        return (1 + count("parity", parity) / count("parity_data", parity_data))[()]
    return (1 + count("replicas", replicas, 0))[()]


def local_bytes(nodes, disks_per_node, disk_bytes, usable_fraction=1.0):
    """Usable size of all nodes' disks together, in B; ½ is usable of mirrored ones."""
    disks = count("nodes", nodes) * count("disks_per_node", disks_per_node)
    return (disks * positive("disk_bytes", disk_bytes) * fraction("usable_fraction", usable_fraction, zero=False))[()]


def shared_cost(price, years=0.0, energy_price_per_year=0.0, shared_bytes=None, needed_bytes=None):
    """One shared system, or as many as `needed_bytes` need, with `years` of energy each."""
    energy = not_negative("years", years) * not_negative("energy_price_per_year", energy_price_per_year)
    systems = 1.0
    if needed_bytes is not None:
        systems = np.ceil(positive("needed_bytes", needed_bytes) / positive("shared_bytes", shared_bytes))
    return (systems * (positive("price", price) + energy))[()]


# Prices in files --------------------------------------------------------------------------------------------------


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
_TYPES = {"source": "text", "kind": "text", "disks_per_node": "whole", "usable_fraction": "fraction",
          "controller_price": "not_negative", "energy_price_per_year": "not_negative"}  # fmt: skip
_KEYS = {one.name: _TYPES.get(one.name, "positive") for kind in _KINDS.values() for one in dataclasses.fields(kind)}
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
                    parameter, f"{where}:{tables.line_of(text, name, key)}: {key} does not belong to this kind"
                )
        for key, one in known.items():
            if key not in table and one.default is dataclasses.MISSING:
                raise PlanError(parameter, f"{where}:{line}: {name} needs {key}")
        found[name] = kind(name=name, **table)
    return found


def prices(path=None) -> dict[str, Local | Shared]:
    """The paper's prices, and those of `path`, which win where names are the same. OSError if it cannot be read."""
    found = parse(tables.preset("prices.toml"), "prices.toml")
    if path is not None:
        found.update(parse(tables.read(path, "prices_file"), str(path)))
    return found
