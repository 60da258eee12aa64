"""Machines: those of papers 000 (Table 3.1) and 001 (Table I) in systems.toml, and the user's own
in files like it.
"""

import dataclasses

from . import tables
from .check import PlanError

YEAR_S = 365.25 * 86400


@dataclasses.dataclass(frozen=True)
class System:
    """One table of the TOML. None: the source does not say. Bytes, bytes a second, years
    (docs/plan/latency.md).

    `assumed`: which of the numbers are not from `source`.
    """

    name: str
    source: str = ""
    assumed: str = ""
    processors: int | None = None
    processors_per_node: int | None = None
    memory_per_processor_bytes: float | None = None
    saved_fraction: float = 0.5
    device_mtti_years: float = 5.0
    storage_bytes_per_s: float | None = None
    bisection_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None
    ram_bytes: float | None = None
    storage_bytes: float | None = None
    device_bytes: float | None = None
    device_bytes_per_s: float | None = None

    @property
    def device_mtti_s(self) -> float:
        return self.device_mtti_years * YEAR_S

    @property
    def saved_bytes(self) -> float | None:
        """d: what one processor saves."""
        memory = self.memory_per_processor_bytes
        if memory is None and self.ram_bytes is not None and self.processors:
            memory = self.ram_bytes / self.processors
        return None if memory is None else memory * self.saved_fraction

    @property
    def storage_rate_bytes_per_s(self) -> float | None:
        """As given, else all devices together (paper 001, § III-D)."""
        if self.storage_bytes_per_s is not None:
            return self.storage_bytes_per_s
        devices = (self.storage_bytes, self.device_bytes, self.device_bytes_per_s)
        return None if None in devices else devices[0] / devices[1] * devices[2]


_KINDS = {"source": "text", "assumed": "text", "processors": "whole",
          "processors_per_node": "whole", "saved_fraction": "fraction"}
_KEYS = {one.name: _KINDS.get(one.name, "positive") for one in dataclasses.fields(System)
         if one.name != "name"}


def parse(text: str, where: str, parameter: str = "systems_file") -> dict[str, System]:
    """Machines of a TOML text. Raises PlanError naming `where`, line and key."""
    return {name: System(name=name, **table) for name,
            table in tables.parse(text, where, parameter, _KEYS).items()}


def systems(path=None) -> dict[str, System]:
    """The presets, and those of `path`, which win where names are the same. OSError if it cannot be
    read.
    """
    found = parse(tables.preset("systems.toml"), "systems.toml")
    if path is not None:
        found.update(parse(tables.read(path, "systems_file"), str(path)))
    return found


def system(name: str, path=None) -> System:
    """One machine. Raises PlanError with the nearest name if there is none of that name."""
    known = systems(path)
    if name not in known:
        raise PlanError("system", f"{name} is not known{tables.nearest(name, known)}")
    return known[name]
