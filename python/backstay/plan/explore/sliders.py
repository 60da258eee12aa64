"""What can be moved on the page, and over which values. Units: B, B/s, s; each slider's text is
made in page.js.
"""

from typing import NamedTuple

from ..levels import GROUPS, REPLICAS
from ..systems import YEAR_S
from ..words import counted

DECADE = (1, 1.3, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)


class Slider(NamedTuple):
    """`start` is one of `values`; `unit`: B, B/s, s, nodes, share or text."""

    key: str
    label: str
    unit: str
    values: list
    start: float | str


def decades(low: int, high: int, times: float = 1.0) -> list[float]:
    """Ten values a decade from 10^low to 10^high, each `times` as much."""
    steps = [float(f"{step}e{power}") * times for power in range(low, high) for step in DECADE]
    return [*steps, float(f"1e{high}") * times]


def doubling(low: int, high: int) -> list[int]:
    """Two values from each power of two to the next, 2^low to 2^high."""
    steps = [2**power for power in range(low, high + 1)]
    return sorted({*steps, *(step + step // 2 for step in steps[:-1])})


PROTECTIONS = [counted(count, "replica") for count in REPLICAS] + [f"parity {k}+{m}" for k,
    m in GROUPS]
NODES_MIN = max(sum(group) for group in GROUPS)  # so that everything fits

SLIDERS = (
    Slider("nodes", "nodes of the job", "nodes", doubling(NODES_MIN.bit_length() - 1, 20), 1024),
    Slider("saved_bytes", "memory saved by a node", "B", decades(9, 13), 63e9),
    Slider("node_mtti_s", "mean time to interrupt of a node", "s", decades(-2, 2, YEAR_S),
           4 * YEAR_S),
    Slider("software_share", "failures that leave all nodes up", "share",
           [step / 20 for step in range(20)], 0.2),
    Slider("copy_bytes_per_s", "memory copy of a node", "B/s", decades(9, 12), 1e10),
    Slider("disk_bytes_per_s", "local disk of a node", "B/s", decades(7, 11), 2e9),
    Slider("network_bytes_per_s", "network of a node", "B/s", decades(8, 12), 1.3e10),
    Slider("storage_bytes_per_s", "all shared storage together", "B/s", decades(8, 14), 1e11),
    Slider("protection", "replicas or parity on other nodes", "text", PROTECTIONS, "2 replicas"),
    Slider("losses", "nodes lost at once", "nodes", doubling(0, 10), 8),
)


class Settings(NamedTuple):
    """A position of every slider, by its key."""

    nodes: int
    saved_bytes: float
    node_mtti_s: float
    software_share: float
    copy_bytes_per_s: float
    disk_bytes_per_s: float
    network_bytes_per_s: float
    storage_bytes_per_s: float
    protection: str
    losses: int


START = Settings(**{one.key: one.start for one in SLIDERS})
