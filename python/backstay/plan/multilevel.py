"""Best intervals for several levels at once, to first order. docs/plan/multilevel.md has symbols
and equations.

Source: A. Benoit, A. Cavelan, V. Le Fèvre, Y. Robert, H. Sun, "Towards Optimal Multi-Level
Checkpointing", IEEE Transactions on Computers 66 (2017) 1212.
"""

import itertools
from typing import NamedTuple

import numpy as np

from .check import PlanError, not_negative, positive

LEVELS_MAX = 8  # `pattern` tries two multiples for each


class Level(NamedTuple):
    """One level. Seconds: what saving at it adds, restart from it, mean time between failures that
    need it.
    """

    name: str
    cost_s: float
    restart_s: float
    mtti_s: float


class Pattern(NamedTuple):
    """The pattern: every `base_interval_s` of computing one checkpoint, whose level `level_at`
    gives.

    `levels`: the used ones, weakest first, with the failures of those left out; `every[j]`: level j
    or above at each every[j]-th checkpoint; `overhead_fraction` H and `restart_fraction` Σ λR, to
    first order, per second of computing.
    """

    levels: tuple[Level, ...]
    every: tuple[int, ...]
    base_interval_s: float
    overhead_fraction: float
    restart_fraction: float

    @property
    def intervals_s(self) -> tuple[float, ...]:
        return tuple(self.base_interval_s * every for every in self.every)

    @property
    def efficiency(self) -> float:
        """Share of the time that is computing that counts."""
        return 1 / (1 + self.overhead_fraction + self.restart_fraction)

    def level_at(self, checkpoint: int) -> int:
        """Index into `levels` of the level of the `checkpoint`-th checkpoint, counted from 1."""
        return max(j for j, every in enumerate(self.every) if checkpoint % every == 0)


def checked(levels) -> tuple[Level, ...]:
    """The levels as floats. PlanError for none or too many, two of a name, values not above 0
    (restart: below 0).
    """
    if not 1 <= len(levels) <= LEVELS_MAX:
        raise PlanError("levels", f"must be 1 to {LEVELS_MAX}, not {len(levels)}")
    found = []
    for one in map(Level._make, levels):
        try:
            cost, mtti = float(positive("cost",
                                        one.cost_s)), float(positive("mean time between failures",
                                            one.mtti_s))
            found.append(Level(one.name, cost, float(not_negative("restart", one.restart_s)), mtti))
        except PlanError as error:
            raise PlanError("levels", f"{one.name}: {error}") from None
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise PlanError("levels", f"must have different names, not {', '.join(names)}")
    return tuple(found)


def overhead_fraction(intervals_s, levels):
    """H = Σ (C/τ + τ λ/2) per second of computing; `intervals_s`: one a level on the last axis, in
    s.
    """
    tau = positive("intervals_s", intervals_s)
    cost, rate = np.array([one.cost_s for one in levels]), 1 / np.array(
        [one.mtti_s for one in levels])
    return (cost / tau + rate * tau / 2).sum(axis=-1)[()]


def free_intervals_s(levels) -> np.ndarray:
    """τ = √(2C/λ) for each level by itself, in s: Young's interval of each."""
    return np.array([np.sqrt(2 * one.cost_s * one.mtti_s) for one in levels])


def merged(levels, used) -> tuple[Level, ...]:
    """The levels whose indices are in `used` (growing, the last one among them), with the rates of
    those left out.
    """
    found, begin = [], 0
    for j in used:
        rate = sum(1 / one.mtti_s for one in levels[begin : j + 1])
        found.append(levels[j]._replace(mtti_s=1 / rate))
        begin = j + 1
    return tuple(found)


def best_subset(levels) -> tuple[int, ...]:
    """Indices of the levels worth writing: least Σ √(2 λ C) with the last one kept (dynamic
    programme).
    """
    rates = np.concatenate([[0.0], np.cumsum([1 / one.mtti_s for one in levels])])
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for j, one in enumerate(levels):
        ways = (
            (best[i][0] + np.sqrt(2 * (rates[j + 1] - rates[i]) * one.cost_s), (*best[i][1], j))
            for i in range(j + 1)
        )
        best.append(min(ways))
    return best[-1][1]


def nested(levels, every) -> tuple[float, float]:
    """(base interval in s, H) for whole multiples `every` of it, one a level."""
    multiples = np.asarray(every, dtype=float)
    cost = (np.array([one.cost_s for one in levels]) / multiples).sum()
    rate = (multiples / np.array([one.mtti_s for one in levels])).sum()
    return float(np.sqrt(2 * cost / rate)), float(np.sqrt(2 * cost * rate))


def pattern(levels) -> Pattern:
    """The best nested pattern of `levels` (weakest first): which to use, how often each. PlanError
    as `checked`.
    """
    known = checked(levels)
    used = merged(known, best_subset(known))
    free = free_intervals_s(used)
    choices = [sorted({max(1, int(np.floor(ratio))), int(np.floor(ratio)) + 1}) for ratio
               in free[1:] / free[:-1]]
    ways = [tuple(itertools.accumulate((1, *way), lambda a, b: a * b)) for way
            in itertools.product(*choices)]
    every = min(ways, key=lambda way: nested(used, way)[1])
    base, overhead = nested(used, every)
    restart = sum(one.restart_s / one.mtti_s for one in used)
    return Pattern(used, every, base, overhead, restart)
