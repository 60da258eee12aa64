"""Chance of a restart with random balanced replicas after f simultaneous losses.
docs/plan/survival.md.

Formulas for paper 002, § 5.4 and Table 2. `nodes` n, `replicas` r of each node's checkpoint on
other nodes, `failures` f lost together. Raise PlanError for values that are not whole, r > n − 1,
or f > n.
"""

import numpy as np

from .check import count, fraction, whole


def checked(failures, nodes, replicas):
    """(f as an array, n, r), or PlanError."""
    n = whole("nodes", nodes, 2)
    r = whole("replicas", replicas, 1, n - 1, "each replica needs another node")
    return count("failures", failures, 0, n, "the number of nodes"), n, r


def all_replicas_lost(failures, nodes, replicas):
    """p = C(f−1, r)/C(n−1, r): chance that the r replicas of a lost node are all lost as well.

    The quotient is also C(n−1−r, n−f)/C(n−1, n−f); the shorter product is taken, and ended where it
    has become 0.
    """
    f, n, r = checked(failures, nodes, replicas)
    chance = np.ones_like(f)
    for i in range(int(min(r, (n - f).max(initial=0)))):
        by_replica = np.maximum(f - 1 - i, 0) / (n - 1 - i)
        by_survivor = (n - 1 - r - i) / (n - 1 - i) if n - 1 - r - i > 0 else 0.0
        few_replicas = r <= n - f
        step = np.where(few_replicas, by_replica if i < r else 1.0, by_survivor)
        chance *= np.where(i < np.where(few_replicas, r, n - f), step, 1.0)
        if not chance.any():
            break
    return np.where(f <= r, 0.0, chance)[()]


def expected_losses(failures, nodes, replicas):
    """λ = f p: expected number of checkpoints of which every copy is lost."""
    return (np.asarray(failures, dtype=float) * all_replicas_lost(failures, nodes, replicas))[()]


def probability(failures, nodes, replicas):
    """P(restart possible) ≈ e^(−λ); exactly 1 for f ≤ r, exactly 0 for f > r (n − f). Table 2
    within ±1.
    """
    f, n, r = checked(failures, nodes, replicas)
    return np.where(f > r * (n - f), 0.0, np.exp(-expected_losses(f, n, r)))[()]


def probability_at_least(failures, nodes, replicas):
    """P ≥ 1 − λ (Markov's inequality): holds for every placement in which all sets of r nodes are
    equally likely.
    """
    f, n, r = checked(failures, nodes, replicas)
    return np.where(f > r * (n - f), 0.0, np.maximum(0.0, 1 - expected_losses(f, n, r)))[()]


def largest(chance, most: int, target) -> int:
    """The largest f in 0..most with chance(f) ≥ target, for a chance that falls with f and is 1 at
    f = 0.
    """
    wanted = float(fraction("target", target, zero=False, one=False))
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance(middle) >= wanted else (low, middle)
    return low


def allowed_failures(nodes, replicas, target) -> int:
    """The largest number of simultaneous losses with P ≥ `target` (the numbers of Table 2)."""
    checked(0, nodes, replicas)
    return largest(lambda f: probability(f, nodes, replicas), int(nodes), target)
