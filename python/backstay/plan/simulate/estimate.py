"""A mean with the interval that holds the true one."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..check import PlanError

CONFIDENCE = 0.999  # so that two dozen comparisons hold together with 98 %


class Estimate(NamedTuple):
    mean: float
    low: float
    high: float
    trials: int


def mean(values, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of independent `values` with the interval of the normal distribution."""
    drawn = np.asarray(values, dtype=float)
    if len(drawn) < 2:
        raise PlanError("jobs", f"must be at least 2 for a confidence interval, not {len(drawn)}")
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * drawn.std(ddof=1) / math.sqrt(len(drawn))
    middle = float(drawn.mean())
    return Estimate(middle, middle - float(half), middle + float(half), len(drawn))


def exactly(value: float) -> Estimate:
    """What a simulation without chance gives."""
    return Estimate(float(value), float(value), float(value), 1)
