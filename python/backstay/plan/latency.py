"""How long one checkpoint takes: paper 000, eqs. 3.3, 4.1 and 4.2. docs/plan/latency.md has the
symbols.

All functions: `processors` n; `saved_bytes` d, what one processor saves, in B; `link_bytes_per_s`
β_L, `bisection_bytes_per_s` β_n, `storage_bytes_per_s` β_s in B/s, infinite where there is no
limit; `staging_bytes` μ in B; `startup_s` α_c in s. Raise PlanError for values not above 0 (α_c may
be 0).
"""

import numpy as np

from .check import count, not_negative, positive

LIGHTWEIGHT_CREATES_PER_S = 60_000  # § 4.1: α_c = n / 60 000 s


def mtti_s(processors, device_mtti_s):
    """M = M_dev / n: mean time to interrupt of the job, in s (§ 3.3.5, exponential failures)."""
    return (positive("device_mtti_s", device_mtti_s) / count("processors", processors))[()]


def lightweight_startup_s(processors):
    """α_c = n / 60 000 s: creating one object a processor on lightweight storage (§ 4.1)."""
    return (count("processors", processors) / LIGHTWEIGHT_CREATES_PER_S)[()]


def network_bytes_per_s(processors, link_bytes_per_s, bisection_bytes_per_s):
    """β_N = min(n β_L, β_n) in B/s (§ 4.2)."""
    links = count("processors", processors) * positive("link_bytes_per_s", link_bytes_per_s,
                                                       infinite=True)
    return np.minimum(links,
                      positive("bisection_bytes_per_s", bisection_bytes_per_s, infinite=True))[()]


def direct_latency_s(
    processors, saved_bytes, link_bytes_per_s, bisection_bytes_per_s, storage_bytes_per_s,
    startup_s=0.0
):
    """δ = α_c + n d / min(n β_L, β_n, β_s) in s: straight to storage. Eq. 3.3."""
    network = network_bytes_per_s(processors, link_bytes_per_s, bisection_bytes_per_s)
    slowest = np.minimum(network, positive("storage_bytes_per_s", storage_bytes_per_s))
    data = np.asarray(processors) * positive("saved_bytes", saved_bytes)
    return (not_negative("startup_s", startup_s) + data / slowest)[()]


def effective_staging_bytes(staging_bytes, network, storage):
    """k = μ / (1 − β_s/β_N) in B: taken at network speed while the memory drains. Infinite where
    β_s ≥ β_N. § 4.2.

    `network` is β_N and `storage` β_s in B/s.
    """
    memory, fast, slow = np.broadcast_arrays(
        positive("staging_bytes", staging_bytes), positive("network", network, infinite=True),
        positive("storage", storage))  # fmt: skip
    free = 1 - np.minimum(slow / fast, 1)
    return np.divide(memory, free, out=np.full(memory.shape, np.inf), where=free > 0)[()]


def burst_s(data_bytes, staging_bytes, network, storage):
    """Eq. 4.1 without α_c: `data_bytes` at network speed until k bytes are there, the rest at
    storage speed, in s.
    """
    data, fast, slow = np.broadcast_arrays(
        not_negative("data_bytes", data_bytes), positive("network", network, infinite=True),
        positive("storage", storage))  # fmt: skip
    at_once = np.minimum(data, effective_staging_bytes(staging_bytes, fast, slow))
    return (at_once / fast + (data - at_once) / slow)[()]


def overlay_latency_s(processors, saved_bytes, link_bytes_per_s, bisection_bytes_per_s,
                      storage_bytes_per_s,
                      staging_bytes, startup_s=0.0):  # fmt: skip
    """δ through staging memory, in s. Eq. 4.1 with β_N = min(n β_L, β_n)."""
    network = network_bytes_per_s(processors, link_bytes_per_s, bisection_bytes_per_s)
    data = np.asarray(processors) * positive("saved_bytes", saved_bytes)
    staged = burst_s(data, staging_bytes, network,
                     positive("storage_bytes_per_s", storage_bytes_per_s))
    return (not_negative("startup_s", startup_s) + staged)[()]


def overlay_interval_floor_s(data_bytes, staging_bytes, network, storage):
    """τ_lb = (μ/β_s) min(1, n d / k) in s: the staging memory must have drained. Eq. 4.2;
    `data_bytes` is n d.
    """
    room = effective_staging_bytes(staging_bytes, network, storage)
    drained = positive("staging_bytes", staging_bytes) / positive("storage", storage)
    return (drained * np.minimum(1, positive("data_bytes", data_bytes) / room))[()]


def overhead_fraction(latency_s, interval_s):
    """T_δ/(T_s + T_δ) = δ/(τ + δ): share of the time spent saving (Figs. 3.4, 4.5)."""
    latency = positive("latency_s", latency_s)
    return (latency / (positive("interval_s", interval_s) + latency))[()]
