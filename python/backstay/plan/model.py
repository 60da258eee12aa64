"""One checkpoint of a job on a machine: latency, interval, throughput, overhead (paper 000,
chapters 3 and 4).
"""

from typing import NamedTuple

import numpy as np

from . import latency
from .check import PlanError, count, positive
from .interval import daly_s
from .systems import System

METHODS = ("pfs", "lwfs", "overlay")
# § 4.3: "1,024 intermediate-node processors, each with double the memory".
STAGING_PROCESSORS = 1024


class Checkpoint(NamedTuple):
    """Arrays of the shape of `processors`; seconds, bytes, bytes a second. `limit`: what bounds the
    throughput.
    """

    latency_s: np.ndarray
    interval_s: np.ndarray
    throughput_bytes_per_s: np.ndarray
    overhead_fraction: np.ndarray
    mtti_s: np.ndarray
    data_bytes: np.ndarray
    startup_s: np.ndarray
    daly_interval_s: np.ndarray
    interval_floor_s: np.ndarray
    limit: np.ndarray


def paper_staging_bytes(system: System, processors: int = STAGING_PROCESSORS) -> float:
    """μ of § 4.3 in B: `processors` staging processors with twice a processor's memory."""
    memory = system.memory_per_processor_bytes
    if memory is None:
        raise PlanError("staging_bytes",
                        f"must be given: {system.name} has no memory_per_processor_bytes")
    return 2 * memory * processors


def _wanted(system: System, what: str, value):
    if value is None:
        raise PlanError("system",
                        f"{system.name} ({system.source}) does not say {what}; describe it in a "
                        f"TOML file")
    return value


def _limit(data, links, bisection, storage, room) -> np.ndarray:
    network = np.where(links <= bisection, "link", "bisection")
    over = (storage < np.minimum(links, bisection)) if room is None else data > room
    return np.where(over, "storage" if room is None else "staging memory", network)


def checkpoint(system: System, processors, method="pfs", staging_bytes=None,
               startup_s=None) -> Checkpoint:
    """Eqs. 3.2, 3.3, 4.1, 4.2 for `processors` (an array, if wanted) of a machine.

    `staging_bytes` counts for the overlay only, default `paper_staging_bytes`; `startup_s`: default
    0 for pfs, n/60 000 s else.
    Raises PlanError for an unknown method and for a machine whose table lacks what the method
    needs.
    """
    if method not in METHODS:
        raise PlanError("method", f"must be one of {', '.join(METHODS)}, not {method!r}")
    n = count("processors", processors)
    storage = _wanted(system, "its storage bandwidth", system.storage_rate_bytes_per_s)
    saved = _wanted(system, "the memory of a processor", system.saved_bytes)
    link, bisection = system.link_bytes_per_s or np.inf, system.bisection_bytes_per_s or np.inf
    data, links, floor, room = n * saved, n * link, np.zeros_like(n), None
    startup = np.zeros_like(n) if method == "pfs" else np.asarray(latency.lightweight_startup_s(n))
    if startup_s is not None:
        startup = np.full_like(n, startup_s)
    if method == "overlay":
        if np.isinf(min(link, bisection)):
            raise PlanError(
                "system",
                f"{system.name} has no network bandwidth, which the overlay needs; use a TOML file"
            )
        memory = paper_staging_bytes(system) if staging_bytes is None else positive(
            "staging_bytes", staging_bytes)
        network = latency.network_bytes_per_s(n, link, bisection)
        room = latency.effective_staging_bytes(memory, network, storage)
        floor = latency.overlay_interval_floor_s(data, memory, network, storage)
        delta = latency.overlay_latency_s(n, saved, link, bisection, storage, memory, startup)
    else:
        delta = latency.direct_latency_s(n, saved, link, bisection, storage, startup)
    mtti = latency.mtti_s(n, system.device_mtti_s)
    daly = daly_s(delta, mtti)
    interval = np.maximum(daly, floor)
    fraction = latency.overhead_fraction(delta, interval)
    limit = _limit(data, links, bisection, storage, room)
    return Checkpoint(delta, interval, data / delta, fraction, mtti, data, startup, daly, floor,
                      limit)
