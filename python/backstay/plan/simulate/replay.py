"""A job on all nodes of a machine, played through against the failures that the machine really had.
"""

from typing import NamedTuple

import numpy as np

from .. import interval
from ..check import PlanError, not_negative, positive
from ..traces import statistics
from ..traces.log import Log
from . import failures, job, schedule

TRIED, SPREAD = 601, 16  # fixed intervals for the best one in hindsight, from Daly's / 16 to × 16
TOO_LONG = 4


class Replay(NamedTuple):
    """Intervals in s, and the share of the log's time that is lost with each."""

    interval_s: dict[str, float]
    lost_fraction: dict[str, float]


def lost_fractions(times_s, intervals_s, cost_s: float, restart_s: float) -> np.ndarray:
    """One value an interval; the job runs from the first to the last of `times_s`."""
    tau, span = positive("interval_s", intervals_s), float(times_s[-1] - times_s[0])
    source = failures.Listed(np.asarray(times_s)[1:-1] - times_s[0])
    plan = schedule.single(tau, float(positive("cost_s", cost_s)),
                           float(not_negative("restart_s", restart_s)))
    return job.run(plan, source, horizon_s=span, jobs=len(tau)).lost_fraction


def replay(times_s, cost_s: float, restart_s: float) -> Replay:
    """Daly's interval for the log's own mean time to interrupt, the best fixed one in hindsight,
    and 4 × Daly's.
    """
    daly, span = float(interval.daly_s(cost_s, np.diff(times_s).mean())), float(times_s[-1]
        - times_s[0])
    if span > job.SEGMENTS_MAX * daly / SPREAD:
        raise PlanError("cost_s",
                        f"of {cost_s:g} s is too little for a log of {span:.4g} s: the checkpoints "
                        f"cannot be counted")
    tried = np.concatenate([[daly, TOO_LONG * daly],
                            daly * np.geomspace(1 / SPREAD, SPREAD, TRIED)])
    lost = lost_fractions(times_s, tried, cost_s, restart_s)
    best = int(lost.argmin())
    names = {"daly": 0, "best": best, "four_times_daly": 1}
    return Replay({k: float(tried[i]) for k, i in names.items()},
                  {k: float(lost[i]) for k, i in names.items()})


def of_log(log: Log, window_s: float, cost_s: float,
           restart_s: float) -> tuple[statistics.Incidents, Replay]:
    """The log's incidents and the job's fate among them."""
    found = statistics.incidents(log, window_s)
    return found, replay(found.times_s, cost_s, restart_s)
