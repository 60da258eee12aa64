"""Machines: those of papers 000 (Table 3.1) and 001 (Table I) in systems.toml, and the user's own in files like it."""

import dataclasses
import difflib
import importlib.resources
import math
import pathlib
import tomllib

from .check import PlanError

YEAR_S = 365.25 * 86400


@dataclasses.dataclass(frozen=True)
class System:
    """One table of the TOML. None: the source does not say. Bytes, bytes a second, years (docs/plan/latency.md)."""

    name: str
    source: str = ""
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


_KEYS = {field.name: field for field in dataclasses.fields(System) if field.name != "name"}


def _nearest(word: str, words) -> str:
    close = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {close[0]}" if close else f"; there are {', '.join(sorted(words))}"


def _line_of(text: str, table: str, key: str | None = None) -> int:
    """Line of a key, for messages; tomllib gives positions only for what it cannot parse."""
    inside, found = False, 1
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            inside = stripped.strip("[] ").split("]")[0].strip().strip("\"'") == table
            found = number if inside else found
        elif inside and key is not None and stripped.split("=")[0].strip() == key:
            return number
    return found


def _check_value(key: str, value) -> str | None:
    """What is wrong with a value, or None."""
    if key == "source":
        return None if isinstance(value, str) else "must be text"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return f"must be a number above 0, not {value!r}"
    if key.startswith("processors") and value != int(value):
        return f"must be a whole number, not {value!r}"
    return f"must be at most 1, not {value!r}" if key == "saved_fraction" and value > 1 else None


def parse(text: str, where: str, parameter: str = "systems_file") -> dict[str, System]:
    """Machines of a TOML text. Raises PlanError naming `where`, line and key."""

    def wrong(line, reason):
        return PlanError(parameter, f"{where}:{line}: {reason}")

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise PlanError(parameter, f"{where}: not TOML: {failure}") from None
    found = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise wrong(1, f"{name} stands outside a table; begin with [name-of-the-machine]")
        for key, value in table.items():
            if key not in _KEYS:
                raise wrong(_line_of(text, name, key), f"unknown key {key}{_nearest(key, _KEYS)}")
            if reason := _check_value(key, value):
                raise wrong(_line_of(text, name, key), f"{key} {reason}")
        found[name] = System(name=name, **table)
    return found


def systems(path=None) -> dict[str, System]:
    """The presets, and those of `path`, which win where names are the same. OSError if it cannot be read."""
    preset = importlib.resources.files(__package__).joinpath("systems.toml").read_text("utf-8")
    found = parse(preset, "systems.toml")
    if path is not None:
        try:
            text = pathlib.Path(path).read_text("utf-8")
        except UnicodeDecodeError:
            raise PlanError("systems_file", f"{path}: not a text file in UTF-8") from None
        found.update(parse(text, str(path)))
    return found


def system(name: str, path=None) -> System:
    """One machine. Raises PlanError with the nearest name if there is none of that name."""
    known = systems(path)
    if name not in known:
        raise PlanError("system", f"{name} is not known{_nearest(name, known)}")
    return known[name]
