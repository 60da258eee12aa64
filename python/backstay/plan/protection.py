"""Ways to protect checkpoints, behind one small interface: random replicas, fixed partners, parity
groups.

A scheme counts in units that are lost whole: nodes, or failure domains of `domain_nodes` nodes.
docs/plan/survival.md has the equations of each. Every scheme offers

    units                   how many units there are
    exact                   whether probability() is exact
    probability(failures)   P(restart possible) after that many units are lost at once
    loss(failures)          1 − probability(), without losing digits where it is tiny
    allowed_failures(target)  the largest number of losses with P ≥ target
    place(rng)              a placement, for survives()
    survives(lost, placement)  lost: trials × nodes, true where a node is lost; one answer a trial
"""

import dataclasses

import numpy as np

from . import groups, survival
from .check import PlanError, whole
from .placement import random_replicas

FEW = 256  # losses; for more of them 1 − P is no longer tiny, and counting takes longer


@dataclasses.dataclass(frozen=True)
class Scheme:
    """What the schemes share: nodes in failure domains. Raises PlanError if the domains do not
    divide the nodes.
    """

    nodes: int
    domain_nodes: int = 1
    ignore_domains: bool = False

    def __post_init__(self):
        whole("nodes", self.nodes, 2)
        whole("domain_nodes", self.domain_nodes, 1, self.nodes, "the number of nodes")
        groups.divides("domain_nodes", self.domain_nodes, self.nodes, "the number of nodes")
        self.probability(0)  # the other checks, so that a scheme that exists can be asked

    @property
    def units(self) -> int:
        return self.nodes // self.domain_nodes

    @property
    def spread(self) -> bool:
        """Whether copies are kept in different failure domains."""
        return self.domain_nodes > 1 and not self.ignore_domains

    @property
    def exact(self) -> bool:
        return True

    def probability(self, failures: int) -> float:
        raise NotImplementedError

    def loss(self, failures: int) -> float:
        return 1 - self.probability(failures)

    def allowed_failures(self, target: float) -> int:
        return survival.largest(self.probability, self.units, target)

    def place(self, rng: np.random.Generator):
        return None


@dataclasses.dataclass(frozen=True)
class RandomReplicas(Scheme):
    """Paper 002: `replicas` balanced random replicas of each node's checkpoint."""

    replicas: int = 1

    @property
    def exact(self) -> bool:
        return False

    def expected_losses(self, failures):
        """λ. With domains: f D C(f−1, r)/C(N−1, r) for f of N domains of D nodes."""
        if self.spread:
            return self.domain_nodes * survival.expected_losses(failures, self.units, self.replicas)
        return survival.expected_losses(failures * self.domain_nodes, self.nodes, self.replicas)

    def probability(self, failures) -> float:
        per_unit = (self.units, failures) if self.spread else (self.nodes,
            failures * self.domain_nodes)
        if survival.probability(per_unit[1], per_unit[0], self.replicas) == 0:
            return 0.0
        return float(np.exp(-self.expected_losses(failures)))

    def loss(self, failures) -> float:
        return -float(np.expm1(-self.expected_losses(failures))) if self.probability(failures) else 1.0

    def probability_at_least(self, failures) -> float:
        """1 − λ: a bound that holds whatever the placement correlates."""
        return max(0.0,
                   1 - float(self.expected_losses(failures))) if self.probability(failures) else 0.0

    def allowed_failures_at_least(self, target: float) -> int:
        """As allowed_failures(), by the bound: it may be relied on where the approximation is too
        hopeful.
        """
        return survival.largest(self.probability_at_least, self.units, target)

    def place(self, rng):
        return random_replicas(self.nodes, self.replicas, rng,
                               self.domain_nodes if self.spread else 1)

    def survives(self, lost, placement):
        return ~(lost & lost[:, placement].all(axis=2)).any(axis=1)


@dataclasses.dataclass(frozen=True)
class Partners(Scheme):
    """Node i's copies are on the next `replicas` nodes of a ring; with domains, at that place of
    the next domains.
    """

    replicas: int = 1

    def probability(self, failures) -> float:
        if self.domain_nodes == 1 or self.spread:
            return groups.partner_probability(failures, self.units, self.replicas)
        # Neighbours lie in one domain: r copies reach over r // D domains beyond it.
        whole("replicas", self.replicas, 1, self.nodes - 1, "each copy needs another node")
        reach = min(self.replicas // self.domain_nodes, self.units - 1)
        if reach == 0:
            return float(whole("failures", failures, 0, self.units,
                               "the number of failure domains") == 0)
        return groups.partner_probability(failures, self.units, reach)

    def survives(self, lost, placement):
        step = self.domain_nodes if self.spread else 1
        gone = lost.copy()
        for j in range(1, self.replicas + 1):
            gone &= np.roll(lost, -j * step, axis=1)
        return ~gone.any(axis=1)


@dataclasses.dataclass(frozen=True)
class Parity(Scheme):
    """Groups of `data` + `parity` nodes, each of which survives the loss of `parity` members."""

    data: int = 1
    parity: int = 1

    @property
    def group(self) -> int:
        return whole("data", self.data) + whole("parity", self.parity)

    def probability(self, failures) -> float:
        if self.domain_nodes == 1 or self.spread:
            self._check_group(self.units)
            return groups.parity_probability(failures, self.units, self.group, self.parity)
        self._check_group(self.nodes)
        if self.domain_nodes % self.group == 0:  # whole groups in each domain
            return float(whole("failures", failures, 0, self.units,
                               "the number of failure domains") == 0)
        groups.divides("domain_nodes", self.domain_nodes, self.group,
                       "the size of a group, or be a multiple of it")
        members = self.group // self.domain_nodes
        return groups.parity_probability(failures, self.units, members,
                                         self.parity // self.domain_nodes)

    def loss(self, failures) -> float:
        if self.domain_nodes > 1 or failures > FEW:
            return super().loss(failures)
        return groups.parity_loss(failures, self.units, self.group, self.parity)

    def _check_group(self, units: int) -> None:
        if self.group > units:
            where = "failure domains" if self.spread else "nodes"
            raise PlanError("parity",
                            f"groups of {self.group} need as many {where}; there are {units}")

    def survives(self, lost, placement):
        if self.spread:  # the same place of every domain belongs together
            lost = lost.reshape(len(lost), self.units, self.domain_nodes).swapaxes(1,
                2).reshape(-1, self.units)
        bounds = np.cumsum(
            [0] + [size for size, times in groups.group_sizes(lost.shape[1], self.group) for _
                   in range(times)]
        )
        good = (np.add.reduceat(lost, bounds[:-1], axis=1, dtype=int) <= self.parity).all(axis=1)
        return good.reshape(-1, self.domain_nodes).all(axis=1) if self.spread else good
