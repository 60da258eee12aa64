"""Advice for a machine: interval, protection, stage nodes and what to expect. docs/plan/advise.md.
"""

import math
from typing import NamedTuple

from .. import levels
from ..check import PlanError, positive, whole
from ..levels import Failures, Machine, Plan
from . import estimate, failures, job, schedule

NEAR = 1e-3  # efficiencies this close count as equal: the smaller store wins
SOLVE_MTTIS, JOBS = 200, 400
NODES_MAX = 100_000  # beyond it the exact chances of parity groups take seconds
KEPT = 2 + 1  # versions: as configured, and the one that drains


class Advice(NamedTuple):
    """`stage_nodes`: how many would hold one version; `store_bytes`: of each node's disk, for the
    kept versions.
    """

    plan: Plan
    efficiency: estimate.Estimate
    stage_nodes: int
    store_bytes: float


def simulated(plan: Plan, found: Failures, seed: int) -> estimate.Estimate:
    """Efficiency of jobs played through; what is under way to a level when a failure strikes counts
    as restart.
    """
    cost = plan.blocked_s
    away = tuple(lag + restart for lag, restart in zip(plan.lag_s, plan.restart_s, strict=True))
    how = schedule.Schedule(plan.interval_s, (1, 1, plan.durable_every), (cost, cost, cost), away)
    rates = levels.rates(plan.choice, found)
    source = failures.Renewal(found.mtti_s, found.shape, rates / rates.sum())
    solve = max(SOLVE_MTTIS * found.mtti_s, 20 * plan.interval_s * plan.durable_every)
    played = job.run(how, source, solve_s=solve, jobs=JOBS, seed=seed)
    return estimate.mean(1 - played.lost_fraction)


def best(machine: Machine, found: Failures) -> Plan:
    """The protection that loses least; of those about equal the one that stores least."""
    plans = [levels.plan(machine, found, choice) for choice in levels.choices(machine.nodes, found)]
    lost = [sum(levels.lost(plan, found)) for plan in plans]
    near = [plan for plan, one in zip(plans, lost, strict=True) if one <= min(lost) + NEAR]
    return min(near, key=lambda plan: plan.choice.extra)


def too_slow(machine: Machine, plan: Plan, found: Failures) -> PlanError:
    """Which input it is: shared storage, if it would do with one as fast as all nodes together, or
    else the failures.
    """
    faster = best(machine._replace(storage_bytes_per_s=math.inf), found)
    if sum(levels.lost(faster, found)) <= levels.LOST_MAX:
        drain = f"one version drains for {plan.restart_s[2]:.4g} s"
        return PlanError("storage_bytes_per_s",
                         f"is too low: {drain}, failures come every {found.mtti_s:.4g} s")
    return PlanError("mtti_s", "is too short for such a machine: most of the time would be lost")


def advise(machine: Machine, found: Failures, stage_memory_bytes: float = 256e9,
           seed: int = 1) -> Advice:
    """The best plan with its efficiency by simulation. PlanError where most of the time would be
    lost.
    """
    levels.checked(machine, found)
    whole("nodes", machine.nodes, 2, NODES_MAX)
    memory = float(positive("stage_memory_bytes", stage_memory_bytes))
    plan = best(machine, found)
    if sum(levels.lost(plan, found)) > levels.LOST_MAX or plan.durable_every > schedule.PERIOD_MAX:
        raise too_slow(machine, plan, found)
    if SOLVE_MTTIS * found.mtti_s > job.SEGMENTS_MAX * plan.interval_s:
        raise PlanError("saved_bytes",
                        f"is too little to simulate: it is saved every {plan.interval_s:.4g} s")
    stages = math.ceil(machine.nodes * machine.saved_bytes / memory)
    store = KEPT * machine.saved_bytes * (1 + plan.choice.extra)
    return Advice(plan, simulated(plan, found, seed), stages, store)
