"""Expected time of a job with checkpoints and failures (paper 000, eq. 3.1), its parts, and its
minimum.

Arguments in s, as in interval.py, and: `interval_s` τ, `solve_s` T_s (computing alone), `restart_s`
R. Raise PlanError for values that are not above 0 (R may be 0) and for an interval longer than the
job.
"""

from typing import NamedTuple

import numpy as np

from .check import PlanError, not_negative, positive
from .interval import long_job_s


class Split(NamedTuple):
    """Expected seconds of each part; they add up to `wall_clock_s`. `failures` is their expected
    number.
    """

    solve_s: np.ndarray
    checkpoint_s: np.ndarray
    rework_s: np.ndarray
    restart_s: np.ndarray
    wall_clock_s: np.ndarray
    failures: np.ndarray

    @property
    def efficiency(self):
        """Share of the time that is computing that counts."""
        return self.solve_s / self.wall_clock_s


def split(interval_s, cost_s, mtti_s, solve_s, restart_s=0.0) -> Split:
    """The parts of eq. 3.1; derivation in docs/plan/interval.md. What overflows becomes infinity.
    """
    tau, cost, mtti, solve, restart = np.broadcast_arrays(
        positive("interval_s", interval_s), positive("cost_s", cost_s), positive("mtti_s", mtti_s),
        positive("solve_s", solve_s), not_negative("restart_s", restart_s))  # fmt: skip
    if (tau > solve).any():
        raise PlanError("interval_s",
                        f"must not be longer than the job computes "
                        f"({solve[tau > solve].flat[0]:.12g} s)")
    length = tau + cost
    intervals = solve / tau - cost / length
    with np.errstate(over="ignore", invalid="ignore"):
        again = mtti * np.expm1(length / mtti)
        rework = intervals * np.maximum(again - length, 0)
        restarts = intervals * np.where(restart > 0, np.expm1(restart / mtti) * again, 0.0)
    saving = cost * (solve / tau - 1)
    total = solve + saving + rework + restarts
    return Split(*(part[()] for part in (solve + 0, saving, rework, restarts, total, total / mtti)))


def wall_clock_s(interval_s, cost_s, mtti_s, solve_s, restart_s=0.0):
    """T_w(τ) = M e^(R/M) (e^((τ+δ)/M) − 1) (T_s/τ − δ/(τ+δ)). Paper 000, eq. 3.1; infinite where it
    overflows.
    """
    return split(interval_s, cost_s, mtti_s, solve_s, restart_s).wall_clock_s


def _log_cost(tau, cost, mtti, solve):
    """log T_w but for constants; a logarithm, because e^((τ+δ)/M) overflows for hopeless intervals.
    """
    load = (tau + cost) / mtti
    return load + np.log(-np.expm1(-load)) + np.log(1 / tau - cost / (tau + cost) / solve)


def exact_s(cost_s, mtti_s, solve_s):
    """τ in (0, T_s] that makes eq. 3.1 smallest, found numerically (relative error about 1e-7, of
    T_w 1e-14).

    R does not move the minimum. A grid in log τ finds the valley, a golden-section search its
    bottom.
    """
    cost, mtti, solve = np.broadcast_arrays(
        positive("cost_s", cost_s), positive("mtti_s", mtti_s),
        positive("solve_s", solve_s))  # fmt: skip
    near = np.minimum(long_job_s(cost, mtti), solve)
    grid = np.linspace(np.log(near / 100), np.log(solve), 257, axis=-1)
    columns = [part[..., None] for part in (cost, mtti, solve)]
    best = _log_cost(np.minimum(np.exp(grid), columns[2]), *columns).argmin(axis=-1)[..., None]
    low = np.take_along_axis(grid, np.maximum(best - 1, 0), -1)[..., 0]
    high = np.take_along_axis(grid, np.minimum(best + 1, 256), -1)[..., 0]
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        down = _log_cost(np.exp(left), cost, mtti, solve) <= _log_cost(np.exp(right), cost, mtti,
            solve)
        low, high = np.where(down, low, left), np.where(down, right, high)
    return np.minimum(np.exp((low + high) / 2), solve)[()]
