"""The source of a simulated job's failures, behind one small interface.

    start(jobs, rng)     begin
    next(job, now_s)     of these jobs the next failure after now: (at_s, need, nodes); at_s is
                         infinite if none comes
    nodes_max            the most nodes that one failure takes

`need` is the index of the weakest level that survives the failure, `nodes` how many nodes are lost.
"""

import math

import numpy as np

from .. import protection
from ..check import PlanError, fraction, positive

SHAPES = (0.05, 100.0)  # of Weibull's law: beyond them its mean or the gaps are no longer numbers


class Renewal:
    """Failures every `mtti_s` on average, the gaps exponential (shape 1) or Weibull; `shares[j]`
    need level j.

    A failure that needs level 1 or above loses a node; the clock starts again when the job runs
    again.
    """

    nodes_max = 1

    def __init__(self, mtti_s: float, shape: float = 1.0, shares=(1.0,)):
        self._shape = float(positive("shape", shape))
        if not SHAPES[0] <= self._shape <= SHAPES[1]:
            raise PlanError("shape", f"must be from {SHAPES[0]:g} to {SHAPES[1]:g}, not {shape:g}")
        self._scale = float(positive("mtti_s", mtti_s)) / math.gamma(1 + 1 / self._shape)
        self._limits = np.cumsum(fraction("shares", shares))
        if abs(self._limits[-1] - 1) > 1e-9:
            raise PlanError("shares", f"must add up to 1, not {self._limits[-1]:.6g}")

    def start(self, jobs: int, rng: np.random.Generator) -> None:
        self._rng = rng

    def next(self, job, now_s):
        gap = self._scale * self._rng.weibull(self._shape, len(job))
        need = np.searchsorted(self._limits[:-1], self._rng.random(len(job)), side="right")
        return now_s + gap, need, np.ones(len(job),
                                          dtype=int) if len(self._limits) == 1 else (need
                                              > 0).astype(int)


class NodeLosses:
    """Failures that take sizes[i] units of `scheme` (protection.py) at once with probability
    weights[i].

    No unit: level 0 (local) survives; units lost whose data the scheme can bring back, on a
    placement as drawn: level 1 (protected); else level 2 (durable). `levels`: which levels of the
    schedule these are. Gaps as in Renewal.
    """

    def __init__(self, mtti_s: float, scheme: protection.Scheme, sizes, weights, levels=(0, 1, 2),
                 shape=1.0):
        self._gaps, self._scheme = Renewal(mtti_s, shape), scheme
        self._levels = np.asarray(levels, dtype=int)
        self._sizes, self._weights = np.asarray(sizes, dtype=int), fraction("weights", weights)
        if abs(self._weights.sum() - 1) > 1e-9:
            raise PlanError("weights", f"must add up to 1, not {self._weights.sum():.6g}")
        if self._sizes.min() < 0 or self._sizes.max() > scheme.units:
            raise PlanError("sizes", f"must be from 0 to {scheme.units}")
        self.nodes_max = int(self._sizes.max()) * scheme.domain_nodes

    def start(self, jobs: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._gaps.start(jobs, rng)
        self._placement = self._scheme.place(rng)

    def next(self, job, now_s):
        at, _, _ = self._gaps.next(job, now_s)
        size = self._rng.choice(self._sizes, p=self._weights, size=len(job))
        rank = self._rng.random((len(job), self._scheme.units)).argsort(axis=1).argsort(axis=1)
        lost = np.repeat(rank < size[:, None], self._scheme.domain_nodes, axis=1)
        kept = self._scheme.survives(lost, self._placement)
        return at, self._levels[np.where(size == 0, 0,
                                         np.where(kept, 1, 2))], size * self._scheme.domain_nodes


class Listed:
    """Failures at `times_s`, growing, as read from a log; `begins_s` where in the log each job
    begins (its second 0).

    `needs` and `nodes`: one value a failure, default level 0 and one node. After the last one none
    comes.
    """

    def __init__(self, times_s, begins_s=0.0, needs=None, nodes=None):
        self._times = np.asarray(times_s, dtype=float)
        if (np.diff(self._times) < 0).any() or not np.isfinite(self._times).all():
            raise PlanError("times_s", "must be finite and grow")
        size = len(self._times)
        self._needs = np.zeros(size, dtype=int) if needs is None else np.asarray(needs, dtype=int)
        self._nodes = np.ones(size, dtype=int) if nodes is None else np.asarray(nodes, dtype=int)
        self._begins, self.nodes_max = np.asarray(begins_s,
                                                  dtype=float), int(self._nodes.max(initial=0))

    def start(self, jobs: int, rng: np.random.Generator) -> None:
        self._begins = np.broadcast_to(self._begins, (jobs,))

    def next(self, job, now_s):
        place = np.searchsorted(self._times, self._begins[job] + now_s, side="right")
        there = place < len(self._times)
        place = np.minimum(place, len(self._times) - 1)
        if not len(self._times):
            return np.full(len(job), np.inf), np.zeros(len(job), dtype=int), np.zeros(len(job),
                dtype=int)
        at = np.where(there, self._times[place] - self._begins[job], np.inf)
        return at, self._needs[place], self._nodes[place]
