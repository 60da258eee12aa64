"""Chance of a restart by drawing losses on real placements, to hold the formulas against."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from .check import PlanError, whole

PLACEMENT_TRIALS = 200  # losses drawn on each placement
_CELLS_MAX = 20_000_000  # booleans held at once
_DRAWN_MAX = 3_000_000_000  # nodes times copies times trials: some minutes


class Share(NamedTuple):
    """Successes of trials, and the interval that holds the true share with the asked confidence."""

    share: float
    low: float
    high: float
    trials: int


def wilson(successes: int, trials: int, confidence: float = 0.99) -> Share:
    """Wilson's score interval for a share (JASA 22 (1927) 209). `confidence` in (0, 1)."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, weight = successes / trials, z * z / trials
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / trials + weight / trials / 4) / (1 + weight)
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    return Share(share, low, 1.0 if successes == trials else min(1.0, middle + half), trials)


def draw_lost(scheme, failures: int, trials: int, rng: np.random.Generator) -> np.ndarray:
    """trials × nodes, true where a node is lost: `failures` whole units a trial, every set equally
    likely.
    """
    lost = np.zeros((trials, scheme.units), dtype=bool)
    if failures == scheme.units:
        lost[:] = True
    elif failures:
        chosen = rng.random((trials, scheme.units)).argpartition(failures, axis=1)[:, :failures]
        np.put_along_axis(lost, chosen, True, axis=1)
    return np.repeat(lost, scheme.domain_nodes, axis=1)


def survived(scheme, failures: int, trials: int, seed: int, confidence: float = 0.99,
             bar=iter) -> Share:
    """Share of `trials` after which `scheme` (protection.py) can restart; the same for the same
    seed. `bar` is given the sizes of the parts in which they are drawn, and gives them back: a bar,
    say."""
    f = whole("failures", failures, 0, scheme.units, "what there is to lose")
    copies = max(1, getattr(scheme, "replicas", 1))
    most = _DRAWN_MAX // (scheme.nodes * copies)
    if most == 0:
        raise PlanError("nodes",
                        f"must be fewer to draw losses on placements: {scheme.nodes} with {copies} "
                        f"copies are too many")
    full, rest = divmod(int(whole("trials", trials, 1, most, "for this many nodes")),
                        PLACEMENT_TRIALS)
    parts, good = [PLACEMENT_TRIALS] * full + [rest] * (rest > 0), 0
    rng = np.random.default_rng(whole("seed", seed, 0))
    at_once = max(1, min(PLACEMENT_TRIALS, _CELLS_MAX // (scheme.nodes * copies)))
    for now in bar(parts):
        placement = scheme.place(rng)
        while now:
            part = min(now, at_once)
            good += int(scheme.survives(draw_lost(scheme, f, part, rng), placement).sum())
            now -= part
    return wilson(good, int(trials), confidence)
