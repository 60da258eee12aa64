"""How a job spent its time, beside the times that paper 000's eq. 3.1 expects for its own cost,
interval and failures.
"""

from typing import NamedTuple

import numpy as np

from ..plan import interval, wall_clock
from ..plan.check import PlanError
from .history import History


class Times(NamedTuple):
    """Shares of the time that the job was running, 0 to 1; `expected` has the same keys, or is None
    with the reason in `why`.
    """

    measured: dict[str, float]
    expected: dict[str, float] | None
    why: str
    interval_s: float | None
    best_interval_s: float | None
    mtti_s: float | None


def _between(history: History) -> float | None:
    """Median time from one capture to the next of the same run, in s."""
    gaps = [b.begin_s - a.captured_s for a,
            b in zip(history.captured, history.captured[1:], strict=False)
            if a.run == b.run and b.begin_s > a.captured_s]  # fmt: skip
    return float(np.median(gaps)) if gaps else None


def account(history: History, mtti_s: float | None = None) -> Times:
    """`mtti_s`: the mean time to interrupt; default the observed one. Raises PlanError if it is not
    above 0.
    """
    total = max(history.observed_s, 1e-9)
    cost = sum(one.blocked_s for one in history.captured)
    redone = sum(one.redone_s or 0.0 for one in history.failures)
    restart = history.restarting_s
    measured = {"saving": cost / total, "work done again": redone / total,
                "restarts": restart / total}
    if mtti_s is None and history.failures:
        mtti_s = total / len(history.failures)
    tau = _between(history)
    if tau is None or mtti_s is None:
        what = "two versions in one run" if tau is None else "a failure, or --mtti"
        return Times(measured, None, f"an expectation needs {what}", tau, None, mtti_s)
    mean_cost = max(cost / len(history.captured), 1e-9)
    best = float(interval.daly_s(mean_cost, mtti_s))
    try:
        parts = wall_clock.split(tau, mean_cost, mtti_s, max(total - cost - redone - restart, tau),
                                 # fmt: skip.
                                 restart / max(len(history.stood), 1))
    except PlanError as error:
        return Times(measured, None, f"no expectation: {error}", tau, best, mtti_s)
    if not np.isfinite(parts.wall_clock_s):
        return Times(measured, None, "failures come too often to get anywhere at this interval",
                     tau, best, mtti_s)
    shares = [float(one / parts.wall_clock_s) for one in (parts.checkpoint_s, parts.rework_s,
        parts.restart_s)]
    return Times(measured, dict(zip(measured, shares, strict=True)), "", tau, best, mtti_s)
