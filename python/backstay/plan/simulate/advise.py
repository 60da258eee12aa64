"""Advice for a machine: interval, protection, stage nodes and what to expect. docs/plan/advise.md."""

import math
from typing import NamedTuple

import numpy as np

from .. import interval, protection
from ..check import PlanError, fraction, positive, whole
from . import estimate, failures, job, schedule

SIZES = {1: 0.96, 2: 0.03, 8: 0.01}  # nodes that an incident takes: about LANL's, docs/plan/replay.md
NEAR = 1e-3  # efficiencies this close count as equal: the smaller store wins
SOLVE_MTTIS, JOBS, FAILURES_MAX = 200, 400, 0.5


class Machine(NamedTuple):
    """`saved_bytes`: what a node saves; bandwidths of a node (storage: of all shared storage), in B/s."""

    nodes: int
    saved_bytes: float
    copy_bytes_per_s: float
    disk_bytes_per_s: float
    network_bytes_per_s: float
    storage_bytes_per_s: float
    stage_memory_bytes: float


class Failures(NamedTuple):
    """`mtti_s` of the whole job; `shape` of Weibull's law; `sizes`: share of incidents by nodes lost;
    `software_share`: of all failures those after which every node is still there."""

    mtti_s: float
    shape: float = 1.0
    sizes: dict[int, float] = SIZES
    software_share: float = 0.0


class Choice(NamedTuple):
    """A way to protect. `extra`: bytes stored more, per byte saved; `lost_share`: of incidents those it cannot mend."""

    name: str
    scheme: protection.Scheme
    extra: float
    lost_share: float


class Advice(NamedTuple):
    """Times in s, sizes in B. Levels: local, protected, durable; every `interval_s` a version, every durable_every-th
    of them goes to shared storage. `lag_s`: until a version reaches each level."""

    choice: Choice
    interval_s: float
    durable_every: int
    blocked_s: float
    lag_s: tuple[float, float, float]
    restart_s: tuple[float, float, float]
    efficiency: estimate.Estimate
    stage_nodes: int
    store_bytes: float


def checked(machine: Machine, found: Failures) -> None:
    """PlanError for what cannot be."""
    whole("nodes", machine.nodes, 2, 100_000)
    for name in Machine._fields[1:]:
        positive(name, getattr(machine, name))
    positive("mtti_s", found.mtti_s)
    fraction("software_share", found.software_share)
    fraction("sizes", list(found.sizes.values()))


def choices(machine: Machine, found: Failures) -> list[Choice]:
    """What fits on so many nodes: one to three random replicas, parity groups."""
    ways = []
    for replicas in (1, 2, 3):
        if replicas < machine.nodes:
            ways.append((f"{replicas} replicas" if replicas > 1 else "1 replica",
                         protection.RandomReplicas(machine.nodes, replicas=replicas), float(replicas)))  # fmt: skip
    for data, parity in ((4, 1), (8, 2), (14, 2)):
        if data + parity <= machine.nodes:
            scheme = protection.Parity(machine.nodes, data=data, parity=parity)
            ways.append((f"parity {data}+{parity}", scheme, parity / data))
    return [Choice(name, scheme, extra, _lost_share(scheme, found)) for name, scheme, extra in ways]


def _lost_share(scheme, found: Failures) -> float:
    hard = 1 - found.software_share
    lost = ((share, scheme.probability(min(size, scheme.units))) for size, share in found.sizes.items())
    return hard * sum(share * (1 - alive) for share, alive in lost)


def _rates(choice: Choice, found: Failures) -> np.ndarray:
    """Failures a second that need local, protected, durable."""
    hard = 1 - found.software_share - choice.lost_share
    return np.array([found.software_share, max(0.0, hard), choice.lost_share]) / found.mtti_s


def _plan(machine: Machine, found: Failures, choice: Choice) -> Advice:
    saved, all_saved = machine.saved_bytes, machine.saved_bytes * machine.nodes
    blocked = saved / machine.copy_bytes_per_s
    local = saved / machine.disk_bytes_per_s
    protected = local + saved * choice.extra / min(machine.network_bytes_per_s, machine.disk_bytes_per_s)
    drain = all_saved / min(machine.storage_bytes_per_s, machine.nodes * machine.network_bytes_per_s)
    # A version must be protected, and a durable one durable, before the next of its kind begins.
    tau = max(float(interval.long_job_s(blocked, found.mtti_s)), protected)
    every = math.ceil(drain / tau)
    fetch = saved / min(machine.network_bytes_per_s, machine.disk_bytes_per_s)
    lag, restart = (local, protected, protected + drain), (local, fetch, drain)
    stages = math.ceil(all_saved / machine.stage_memory_bytes)
    nothing = estimate.exactly(0.0)
    store = 2 * saved * (1 + choice.extra)  # two versions are kept
    return Advice(choice, tau, max(1, every), blocked, lag, restart, nothing, stages, store)


def lost_per_second(plan: Advice, found: Failures) -> float:
    """First order: what a second of computing loses to saving, rework, versions under way, and restarts."""
    span = np.array([1.0, 1.0, float(plan.durable_every)]) * plan.interval_s
    each = span / 2 + np.array(plan.lag_s) + np.array(plan.restart_s)
    return plan.blocked_s / plan.interval_s + float(_rates(plan.choice, found) @ each)


def simulated(plan: Advice, found: Failures, seed: int) -> estimate.Estimate:
    """Efficiency of jobs played through; what is under way to a level when a failure strikes counts as restart."""
    cost = plan.blocked_s
    away = tuple(lag + restart for lag, restart in zip(plan.lag_s, plan.restart_s, strict=True))
    how = schedule.Schedule(plan.interval_s, (1, 1, plan.durable_every), (cost, cost, cost), away)
    rates = _rates(plan.choice, found)
    source = failures.Renewal(found.mtti_s, found.shape, rates / rates.sum())
    solve = max(SOLVE_MTTIS * found.mtti_s, 20 * plan.interval_s * plan.durable_every)
    played = job.run(how, source, solve_s=solve, jobs=JOBS, seed=seed)
    return estimate.mean(1 - played.lost_fraction)


def advise(machine: Machine, found: Failures, seed: int = 1) -> Advice:
    """The protection that loses least; of those about equal the one that stores least. Efficiency by simulation."""
    checked(machine, found)
    plans = [_plan(machine, found, choice) for choice in choices(machine, found)]
    lost = [lost_per_second(plan, found) for plan in plans]
    near = [plan for plan, one in zip(plans, lost, strict=True) if one <= min(lost) + NEAR]
    best = min(near, key=lambda plan: plan.choice.extra)
    if lost_per_second(best, found) > FAILURES_MAX or best.durable_every > schedule.PERIOD_MAX:
        raise PlanError("mtti_s", "is too short for such a machine: most of the time would be lost")
    return best._replace(efficiency=simulated(best, found, seed))
