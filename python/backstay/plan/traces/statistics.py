"""What a log says about failures: incidents, mean time to interrupt, spread, Weibull's law."""

from typing import NamedTuple

import numpy as np

from ..check import PlanError, not_negative
from ..words import counted
from .log import Log

INCIDENTS_MIN = 3
SHAPE_MAX = 1e3  # of a fit: gaps that differ by less than about a thousandth are all alike
ALIKE = "the gaps are all alike: the larger the shape of Weibull's law, the better it fits"
CLASSES = {"1": (1, 1), "2": (2, 2), "3-16": (3, 16), "more": (17, np.inf)}  # nodes


class Incidents(NamedTuple):
    """When each begins, in s from the first failure, and how many nodes it takes."""

    times_s: np.ndarray
    nodes: np.ndarray


class Weibull(NamedTuple):
    """Law of the gaps. `shape` < 1: failures come in bunches. `shape_error`: its standard error.

    `distance` is Kolmogorov's: the largest difference of the distribution functions.
    """

    shape: float
    shape_error: float
    scale_s: float
    distance: float


def incidents(log: Log, window_s: float) -> Incidents:
    """Failures within `window_s` of the first of them are one incident; a node counts once.
    PlanError for too few.
    """
    window = float(not_negative("window_s", window_s))
    times, nodes, place = [], [], 0
    while place < len(log.times_s):
        end = int(np.searchsorted(log.times_s, log.times_s[place] + window, side="right"))
        times.append(log.times_s[place])
        nodes.append(len(set(log.nodes[place:end].tolist())))
        place = end
    if len(times) < INCIDENTS_MIN:
        raise PlanError("trace",
                        f"holds {counted(len(times), 'incident')} at least --window apart; "
                        f"{INCIDENTS_MIN} are needed")
    return Incidents(np.array(times), np.array(nodes))


def shares(found: Incidents) -> dict[str, float]:
    """Share of the incidents that take 1, 2, 3 to 16, more nodes."""
    return {name: float(((found.nodes >= low) & (found.nodes <= high)).mean()) for name,
            (low, high) in CLASSES.items()}


def gaps_s(found: Incidents) -> np.ndarray:
    return np.diff(found.times_s)


def coefficient_of_variation(gaps) -> float:
    """Standard deviation over mean; 1 for exponential failures, more if they come in bunches."""
    return float(np.std(gaps) / np.mean(gaps))


def weibull(gaps) -> Weibull | None:
    """Maximum likelihood; None where it has no maximum, the gaps being all alike.

    The shape k solves Σ x^k ln x / Σ x^k − 1/k = mean of ln x; the left side grows with k.
    """
    x = np.asarray(gaps, dtype=float)
    if len(x) < 2 or not (x > 0).all():
        raise PlanError("trace", "holds too few gaps above 0 for Weibull's law")
    logs = np.log(x / x.max())

    def too_large(shape: float) -> bool:
        weights = np.exp(shape * logs)
        return (weights @ logs) / weights.sum() - 1 / shape > logs.mean()

    if not too_large(SHAPE_MAX):
        return None
    low, high = 1e-3, SHAPE_MAX
    for _ in range(100):
        shape = np.sqrt(low * high)
        low, high = (low, shape) if too_large(shape) else (shape, high)
    scale = float(x.max() * np.mean(np.exp(shape * logs)) ** (1 / shape))
    fitted = -np.expm1(-((x / scale) ** shape))
    # 6/π² (k²/n): the asymptotic variance of the estimate.
    error = float(shape * np.sqrt(6 / len(x)) / np.pi)
    return Weibull(float(shape), error, scale, _distance(x, fitted))


def exponential_distance(gaps) -> float:
    """Kolmogorov's distance of the gaps from the exponential law with the same mean."""
    x = np.asarray(gaps, dtype=float)
    return _distance(x, -np.expm1(-x / x.mean()))


def _distance(x, law) -> float:
    order = np.argsort(x)
    steps, size = np.arange(len(x)), len(x)
    return float(np.maximum(law[order] - steps / size, (steps + 1) / size - law[order]).max())
