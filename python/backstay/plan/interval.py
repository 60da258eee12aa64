"""How much to compute between two checkpoints: the published formulas. docs/plan/interval.md has
the symbols.

All functions: `cost_s` is δ, how long one checkpoint stops the job, in s; `mtti_s` is M, the job's
mean time to interrupt, in s; the result is τ, computing between two checkpoints, in s. Raise
PlanError for values not above 0.
"""

import numpy as np

from .check import positive


def _checked(cost_s, mtti_s):
    return np.broadcast_arrays(positive("cost_s", cost_s), positive("mtti_s", mtti_s))


def young_s(cost_s, mtti_s):
    """τ = √(2δM). J. W. Young, Communications of the ACM 17 (1974) 530."""
    cost, mtti = _checked(cost_s, mtti_s)
    return np.sqrt(2 * cost * mtti)[()]


def daly_first_order_s(cost_s, mtti_s):
    """τ = √(2δM) − δ for δ < M/2, else M. J. T. Daly, FGCS 22 (2006) 303: lowest order."""
    cost, mtti = _checked(cost_s, mtti_s)
    return np.where(cost < mtti / 2, np.sqrt(2 * cost * mtti) - cost, mtti)[()]


def daly_s(cost_s, mtti_s):
    """τ = √(2δM) [1 + ⅓ √(δ/2M) + ⅑ δ/2M] − δ for δ < 2M, else M. Paper 000, eq. 3.2."""
    cost, mtti = _checked(cost_s, mtti_s)
    ratio = cost / (2 * mtti)
    series = np.sqrt(2 * cost * mtti) * (1 + np.sqrt(ratio) / 3 + ratio / 9) - cost
    return np.where(ratio < 1, series, mtti)[()]


def long_job_s(cost_s, mtti_s):
    """The minimum of paper 000's eq. 3.1 for a long job (T_s → ∞), to rounding.

    With x = τ/M the derivative vanishes where x − 1 + e^(−x − δ/M) = 0. That function is convex and
    grows, and Young's interval lies right of its root, so Newton's steps go down to the root
    without passing it.
    """
    cost, mtti = _checked(cost_s, mtti_s)
    ratio = cost / mtti
    x = np.minimum(1.0, np.sqrt(2 * ratio))
    for _ in range(40):
        x = x - (x + np.expm1(-x - ratio)) / -np.expm1(-x - ratio)
    return (x * mtti)[()]
