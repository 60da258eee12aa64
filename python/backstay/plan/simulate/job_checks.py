"""Models of whole jobs beside jobs played through: intervals, several levels, node losses, spares.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from .. import interval, multilevel, protection, wall_clock
from . import estimate, failures, job, schedule, staging
from .check import Check
from .repair import Repairs

COST_S, MTTI_S, RESTART_S, SEGMENTS = 300.0, 86_400.0, 600.0, 400
LEVELS = (
    multilevel.Level("local", 10, 10, 5e4),
    multilevel.Level("protected", 40, 60, 2e5),
    multilevel.Level("durable", 160, 300, 8e5),
)
MEMORY = staging.Staging(100e9, 40e9, 20e9, 5e9)
LARGE_MEMORY = staging.Staging(2e12, 1e12, 20e9, 5e9)


def one_level(jobs: int, seed: int) -> list[Check]:
    """Eq. 3.1 and its parts, at Daly's interval, half and twice of it."""
    found = []
    for factor, name in ((0.5, "half of Daly's interval"), (1, "Daly's interval"),
                         (2, "twice Daly's interval")):
        tau = factor * float(interval.daly_s(COST_S, MTTI_S))
        formula = wall_clock.split(tau, COST_S, MTTI_S, SEGMENTS * tau, RESTART_S)
        played = job.run(
            schedule.single(tau, COST_S, RESTART_S), failures.Renewal(MTTI_S),
            solve_s=SEGMENTS * tau, jobs=jobs, seed=seed
        )
        found.append(Check(f"expected time, {name}", "s", formula.wall_clock_s,
                           estimate.mean(played.wall_clock_s), 1e-3))
    for part in ("rework_s", "restart_s", "failures"):
        drawn = estimate.mean(getattr(played, part))
        label = "failures" if part == "failures" else f"of it {part[:-2]}"
        found.append(Check(label, "" if part == "failures" else "s", getattr(formula, part), drawn,
                           2e-3))
    return found


def hard_times(jobs: int, seed: int) -> list[Check]:
    """A cost of half the mean time to interrupt, where first-order formulas are far off."""
    tau = float(interval.daly_s(1200, 2400))
    formula = wall_clock.split(tau, 1200, 2400, 400 * tau, 600)
    played = job.run(schedule.single(tau, 1200, 600), failures.Renewal(2400), solve_s=400 * tau,
                     jobs=jobs, seed=seed)
    return [Check("expected time, δ = M/2", "s", formula.wall_clock_s,
                  estimate.mean(played.wall_clock_s), 2e-3)]


def several_levels(jobs: int, seed: int) -> list[Check]:
    pattern = multilevel.pattern(LEVELS)
    rates = np.array([1 / one.mtti_s for one in pattern.levels])
    source = failures.Renewal(1 / rates.sum(), shares=rates / rates.sum())
    played = job.run(schedule.nested(pattern), source, solve_s=3e6, jobs=jobs, seed=seed)
    lost = estimate.mean(1 / (1 - played.lost_fraction) - 1)
    formula = pattern.overhead_fraction + pattern.restart_fraction
    # First order: the overhead is known to within its square (docs/plan/multilevel.md).
    return [Check("several levels, lost per computing", "", formula, lost, 1.5 * formula)]


def staged_levels(jobs: int, seed: int) -> list[Check]:
    """The same with durable checkpoints through staging memory, which is empty again before the
    next (eqs. 4.1, 4.2).
    """
    cost = float(staging.absorb(LARGE_MEMORY, 0.0)[0])
    pattern = multilevel.pattern([*LEVELS[:-1], LEVELS[-1]._replace(cost_s=cost)])
    rates = np.array([1 / one.mtti_s for one in pattern.levels])
    source = failures.Renewal(1 / rates.sum(), shares=rates / rates.sum())
    played = job.run(schedule.nested(pattern, LARGE_MEMORY), source, solve_s=1e6,
                     jobs=max(2, jobs // 5), seed=seed)
    formula = pattern.overhead_fraction + pattern.restart_fraction
    lost = estimate.mean(1 / (1 - played.lost_fraction) - 1)
    return [Check("several levels, durable staged", "", formula, lost, 1.5 * formula)]


def node_losses(jobs: int, seed: int) -> list[Check]:
    """Losses of several nodes at once, on a placement as drawn; what the replicas cannot bring back
    needs durable.
    """
    scheme, sizes, weights = protection.RandomReplicas(64, replicas=1), (0, 1, 4, 8), (0.3, 0.4,
        0.2, 0.1)
    source = failures.NodeLosses(20_000, scheme, sizes, weights)
    needs = []
    for placement in range(20):  # a placement is drawn at each start
        source.start(jobs, np.random.default_rng((seed, placement)))
        needs.append(source.next(np.arange(jobs), np.zeros(jobs))[1])
    need = np.concatenate(needs)
    durable = sum(w * (1 - scheme.probability(f)) for f, w in zip(sizes, weights, strict=True))
    shares = np.array([weights[0], 1 - weights[0] - durable, durable])
    levels = [one._replace(mtti_s=20_000 / share) for one,
              share in zip(LEVELS, shares, strict=True)]
    pattern = multilevel.pattern(levels)
    formula = pattern.overhead_fraction + pattern.restart_fraction
    source = failures.NodeLosses(20_000, scheme, sizes, weights,
                                 schedule.stand_ins(levels, pattern))
    played = job.run(schedule.nested(pattern), source, solve_s=1e6, jobs=max(2, jobs // 4),
                     seed=seed)
    lost = estimate.mean(1 / (1 - played.lost_fraction) - 1)
    return [
        Check("node losses that need durable", "", durable, estimate.mean(need == 2), 0.05),
        Check("levels under node losses", "", formula, lost, 1.5 * formula),
    ]


def spares(jobs: int, seed: int) -> list[Check]:
    """Erlang's loss formula: share of the time without enough nodes, 2 spares, repairs of 1.5 times
    the MTTI.
    """
    load, spare = 1.5, 2
    terms = [load**k / math.factorial(k) for k in range(spare + 2)]
    played = job.run(
        schedule.single(1000, 0.0), failures.Renewal(1000.0), horizon_s=1e6, jobs=jobs, seed=seed,
        repairs=Repairs(load * 1000, spare),
    )  # fmt: skip
    waiting = estimate.mean(played.waiting_s / played.wall_clock_s)
    return [Check("waiting for nodes, Erlang's formula", "", terms[-1] / sum(terms), waiting, 5e-3)]


def staged(jobs: int, seed: int) -> list[Check]:
    """Eq. 3.1 with the latency of eq. 4.1, saving so seldom that the memory is empty again (eq.
    4.2).
    """
    cost, tau = float(staging.absorb(MEMORY, 0.0)[0]), 1000.0
    formula = wall_clock.wall_clock_s(tau, cost, 20_000, 1e6, 0.0)
    played = job.run(
        schedule.single(tau, 0.0, staging=MEMORY), failures.Renewal(20_000.0), solve_s=1e6,
        jobs=max(2, jobs // 5), seed=seed
    )
    return [Check("expected time with staging", "s", formula, estimate.mean(played.wall_clock_s),
                  1e-3)]


def parts(jobs: int, seed: int) -> list[Callable[[], list[Check]]]:
    played = (one_level, jobs), (hard_times, jobs), (several_levels, jobs), (node_losses,
        jobs), (spares, jobs // 2), (staged, jobs), (staged_levels, jobs)
    return [functools.partial(part, copies, seed) for part, copies in played]
