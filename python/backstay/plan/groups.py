"""Exact chance of a restart with fixed partners and with parity groups. docs/plan/survival.md.

Both count the sets of f lost nodes that lose no data: a coefficient of a product of polynomials
with positive terms, found without cancellation for any number of nodes.
"""

import math
from typing import NamedTuple

import numpy as np

from .check import PlanError, whole

_NODES_MAX = 2_000_000  # beyond, the integral takes seconds and gigabytes


def _tilted(log_x: float, factors):
    """Mean of the exponent when each polynomial's terms are weighted by x^j, and log of the
    product's value at x.
    """
    mean = log_value = 0.0
    for logs, times in factors:
        weights = logs + log_x * np.arange(len(logs))
        top = weights.max()
        weights = np.exp(weights - top)
        mean += times * (weights @ np.arange(len(logs))) / weights.sum()
        log_value += times * (top + math.log(weights.sum()))
    return mean, log_value


def log_coefficient(power: int, factors) -> float:
    """log of [x^power] Π poly^times; `factors`: pairs (logs of the positive terms from x^0 on,
    times).

    −∞ if there is no such term. Cauchy's integral on the circle |x| = e^log_x through the saddle
    point, as a sum over more points than the degree: exact but for rounding.
    """
    degree = sum((len(logs) - 1) * times for logs, times in factors)
    if not 0 <= power <= degree:
        return -math.inf
    low, high = -60.0, 60.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _tilted(middle, factors)[0] < power else (low, middle)
    log_x = (low + high) / 2
    log_value = _tilted(log_x, factors)[1]
    points = degree + 1
    angles = 2j * np.pi * np.arange(points // 2 + 1) / points
    total = -power * angles
    with np.errstate(divide="ignore"):
        for logs, times in factors:
            weights = logs + log_x * np.arange(len(logs))
            weights = np.exp(weights - weights.max())
            total = total + times * np.log(np.polyval(weights[::-1] / weights.sum(),
                                                      np.exp(angles)))
    terms = np.exp(total).real
    # The other half of the circle holds the conjugates, but for x = -1, which is there if the
    # number of points is even.
    share = (terms[0] + 2 * terms[1:].sum() - (terms[-1] if points % 2 == 0 else 0.0)) / points
    return log_value - power * log_x + math.log(share) if share > 0 else -math.inf


def log_choose(n: int, k: int) -> float:
    """log C(n, k); by its factors where they are few, as differences of lgamma lose digits."""
    few = min(k, n - k)
    if few <= 4096:
        i = np.arange(few)
        return float(np.log((n - i) / (few - i)).sum())
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _checked(failures, nodes) -> tuple[int, int]:
    n = whole("nodes", nodes, 2, _NODES_MAX)
    return whole("failures", failures, 0, n, "the number of nodes"), n


def group_sizes(nodes: int, group: int) -> list[tuple[int, int]]:
    """(size, how many): groups of `group` nodes; what is left over makes some of them larger by one
    or more.
    """
    groups = nodes // group
    size, larger = divmod(nodes, groups)
    return [(size + extra, times) for extra, times in ((0, groups - larger), (1, larger)) if times]


def parity_probability(failures, nodes, group, tolerated) -> float:
    """P(no group of `group` nodes loses more than `tolerated`) after `failures` losses, exactly."""
    f, n = _checked(failures, nodes)
    size = whole("group", group, 1, n, "the number of nodes")
    m = whole("tolerated", tolerated, 0, size - 1, "one less than the group")
    factors = [(np.array([log_choose(g, j) for j in range(m + 1)]), times) for g,
               times in group_sizes(n, size)]
    if f <= m:
        return 1.0
    return min(1.0, math.exp(log_coefficient(f, factors) - log_choose(n, f)))


class _Sets(NamedTuple):
    """Sets of 0, 1, 2, .. lost nodes, weighted by x^size: those that lose no data, and those that
    lose some.
    """

    kept: np.ndarray
    lost: np.ndarray

    def beside(self, other: "_Sets", most: int) -> "_Sets":
        """The sets of both together. All terms are positive: nothing cancels."""
        def product(a, b):
            return np.convolve(a, b)[: most + 1]

        return _Sets(product(self.kept, other.kept),
                     product(self.kept + self.lost, other.lost) + product(self.lost, other.kept))


def parity_loss(failures, nodes, group, tolerated) -> float:
    """1 − parity_probability, to rounding also where it is tiny; for a few hundred losses at most.
    """
    f, n = _checked(failures, nodes)
    found = _Sets(np.eye(1, f + 1)[0], np.zeros(f + 1))
    log_x = math.log(max(f, 1) / math.e / n)  # keeps every term within what a number holds
    for size, times in group_sizes(n, whole("group", group, 1, n, "the number of nodes")):
        ways = np.array([math.exp(log_choose(size, j) + j * log_x) if j <= size else 0.0 for j
                         in range(f + 1)])
        bad = np.arange(f + 1) > tolerated
        one = _Sets(np.where(bad, 0.0, ways), np.where(bad, ways, 0.0))
        for bit in reversed(f"{times:b}"):
            found = found.beside(one, f) if bit == "1" else found
            one = one.beside(one, f)
    return float(found.lost[f] / (found.kept[f] + found.lost[f]))


def partner_probability(failures, nodes, replicas) -> float:
    """P(no replicas + 1 neighbours of a ring are lost), exactly; node i's copies are on the next
    `replicas` nodes.
    """
    f, n = _checked(failures, nodes)
    r = whole("replicas", replicas, 1, n - 1, "each copy needs another node")
    left = n - f
    if f <= r:
        return 1.0
    if left == 0 or f > r * left:
        return 0.0
    log_ways = math.log(n / left) + log_coefficient(f, [(np.zeros(r + 1), left)])
    return min(1.0, math.exp(log_ways - log_choose(n, f)))


def divides(name: str, part: int, whole_: int, what: str) -> None:
    """PlanError unless `part` divides `whole_`."""
    if whole_ % part:
        raise PlanError(name, f"must divide {what} ({whole_})")
