"""Models of checkpoints and of survival beside what happens piece by piece, or loss by loss."""

import functools
from collections.abc import Callable

import numpy as np

from .. import aggregation, fill_time, latency, monte_carlo, protection, strategy
from . import estimate, storage
from .check import Check
from .staging import Staging, by_chunks

PROCESSORS, SAVED, LINK, BISECTION, STORAGE, MEMORY = 8192, 0.5e9, 4.8e9, 2.3e12, 50e9, 1e12
CHUNKS = 4096


def staged_latency() -> list[Check]:
    """Eqs. 3.3, 4.1 and 4.2: Red Storm's speeds, 8 192 processors, 1 TB of staging memory."""
    data, fast = PROCESSORS * SAVED, float(latency.network_bytes_per_s(PROCESSORS, LINK, BISECTION))
    machine = (PROCESSORS, SAVED, LINK, BISECTION, STORAGE)
    chunk = data / CHUNKS
    direct = by_chunks(Staging(data, chunk, fast, STORAGE), chunk)[0]
    floor = float(latency.overlay_interval_floor_s(data, MEMORY, fast, STORAGE))
    memory = Staging(data, MEMORY, fast, STORAGE)
    first, second = by_chunks(memory, chunk, [floor])
    staged = latency.overlay_latency_s(*machine, MEMORY)
    # One chunk of the fluid is one of many pieces; straight to storage, each also crosses the
    # network by itself.
    return [
        Check("latency to storage, eq. 3.3", "s", latency.direct_latency_s(*machine),
              estimate.exactly(direct), 0.03),
        Check("latency with staging, eq. 4.1", "s", staged, estimate.exactly(first), 2 / CHUNKS),
        Check("the next one after τ_lb, eq. 4.2", "s", staged, estimate.exactly(second),
              2 / CHUNKS),
    ]


def devices(seed: int) -> list[Check]:
    rng, pieces, count = np.random.default_rng(seed), 4000, 20
    system = (2.05e12, count * 2e12, 2e12, 100e6)
    played = [storage.fill_devices(*system, pieces, rng) for _ in range(20)]
    return [Check("fill-time law", "s", fill_time.ideal_checkpoint_s(*system),
                  estimate.mean(played), 2 * count / pieces)]


def groups(seed: int) -> list[Check]:
    """Eq. 4 with a blocked fraction: writing takes longer than computing."""
    rng, system = np.random.default_rng(seed), (4096, 64, 160e9, 4e9, 1e15)
    blocked = strategy.blocked_fraction_from_steps(160e9, 4e9, 30.0)
    played = [storage.grouped_blocked_s(*system, 30.0, rng) for _ in range(30)]
    return [Check("writer groups, eq. 4", "s", strategy.writer_blocked_s(*system, blocked),
                  estimate.mean(played), 1e-3)]


def pool(seed: int) -> list[Check]:
    histogram, rng = aggregation.PROFILES["lu.C.64"], np.random.default_rng(seed)
    orders = [storage.writes_of_node(histogram, aggregation.PROCESSES, rng) for _ in range(5)]
    without, pooled = aggregation.without_pool(histogram), aggregation.with_pool(histogram)
    data, buffer, memory, copy = aggregation.total_bytes(histogram), 4 * 2**20, 64 * 2**20, 1e9
    blocked = aggregation.blocked_s(histogram, aggregation.PROCESSES, memory, copy, pooled)
    played = storage.pool_blocked_s(data, memory, buffer, copy, data / pooled.disk_s)
    requests = [[storage.requests_without_pool(one), storage.requests_with_pool(one, buffer)]
                for one in orders]
    few = estimate.mean([one[1] for one in requests])
    return [
        Check("requests without a pool", "", without.requests,
              estimate.mean([one[0] for one in requests]), 2e-3),
        Check("requests with a pool", "", pooled.requests, few, 1 / pooled.requests),
        Check("waiting for the pool", "s", blocked, estimate.exactly(played), 2 * buffer / data),
    ]


def survival(trials: int, seed: int) -> list[Check]:
    found = []
    for name, scheme, lost, tolerance in (
        ("4 random replicas, 165 of 1024 lost", protection.RandomReplicas(1024, replicas=4), 165,
         5e-3),
        ("1 fixed partner, 20 of 1024 lost", protection.Partners(1024, replicas=1), 20, 0.0),
        ("parity 14+2, 8 of 256 lost", protection.Parity(256, data=14, parity=2), 8, 0.0),
    ):
        drawn = monte_carlo.survived(scheme, lost, trials, seed, estimate.CONFIDENCE)
        found.append(Check(name, "", scheme.probability(lost), estimate.Estimate(*drawn),
                           tolerance))
    return found


def parts(jobs: int, seed: int) -> list[Callable[[], list[Check]]]:
    drawn = [functools.partial(part, seed) for part in (devices, groups, pool)]
    return [staged_latency, *drawn, functools.partial(survival, 4 * jobs, seed)]
