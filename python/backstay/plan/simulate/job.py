"""A job played through, many copies at once: each step takes every copy to its next failure, or to
its end.

1. A copy that failed waits for nodes (repair.py), then restarts; a failure may strike the restart,
   which then starts over.
2. It computes and saves (schedule.py) until the next failure: what fits is done, and saved at its
   levels.
3. A failure that needs level j throws away everything since the last checkpoint of level j or
   above. Whole checkpoints in the staging memory go on draining; one that was not whole is dropped
   from it.
4. After the last segment no checkpoint follows.

A failure in the middle of a checkpoint loses it. While a copy waits for nodes it cannot fail.
"""

from typing import NamedTuple

import numpy as np

from ..check import COUNT_MAX, PlanError, positive, whole
from . import staging
from .schedule import Pace, Schedule

EVENTS_MAX = 2_000_000  # of one copy; a job that has not ended by then never will
SEGMENTS_MAX = COUNT_MAX  # of a job; beyond it they cannot be counted


class Outcome(NamedTuple):
    """Seconds, one value a copy. The parts add up to `wall_clock_s`; `solve_s` is computing that
    counts.
    """

    wall_clock_s: np.ndarray
    solve_s: np.ndarray
    checkpoint_s: np.ndarray
    rework_s: np.ndarray
    restart_s: np.ndarray
    waiting_s: np.ndarray
    failures: np.ndarray

    @property
    def lost_fraction(self):
        return 1 - self.solve_s / self.wall_clock_s


def run(schedule: Schedule, failures, *, solve_s=None, horizon_s=None, jobs=1000, seed=1,
        repairs=None) -> Outcome:
    """`jobs` copies until each has computed `solve_s`, or until `horizon_s` have passed.

    Raises PlanError if a copy does not come to an end.
    """
    if (solve_s is None) == (horizon_s is None):
        raise PlanError("solve_s", "or horizon_s must be given, one of them")
    copies = whole("jobs", jobs, 1, 10_000_000)
    work = float(positive("solve_s", solve_s if horizon_s is None else horizon_s))
    if work / SEGMENTS_MAX > np.min(schedule.base_interval_s):
        raise PlanError("base_interval_s",
                        f"is too short for a job of {work:.4g} s: its checkpoints cannot be counted")
    state = _Copies(schedule, failures, copies, work, np.inf if horizon_s is None else work, seed,
                    repairs)
    for _ in range(EVENTS_MAX):
        running = np.flatnonzero(state.running)
        if not len(running):
            return state.outcome()
        state.step(running)
    raise PlanError("solve_s", "needs too many restarts: the job would never end")


class _Copies:
    """State of all copies, one value each."""

    def __init__(self, schedule, failures, jobs, work_s, horizon_s, seed, repairs):
        rng = np.random.default_rng(whole("seed", seed, 0))
        self.schedule, self.source, self.repairs, self.horizon_s = schedule, failures, repairs, horizon_s
        self.pace, self.every = Pace(schedule, jobs), np.array(schedule.every)
        self.costs_s, self.restarts_s = np.array(schedule.costs_s), np.array(schedule.restarts_s)
        tau = self.pace.interval_s
        self.segments = np.maximum(1, np.ceil(work_s / tau * (1 - 1e-12))).astype(np.int64)
        self.last_s = work_s - (self.segments - 1) * tau
        self.running = np.ones(jobs, dtype=bool)
        self.now, self.saving, self.restart, self.waiting, self.computed = np.zeros((5, jobs))
        self.count = np.zeros(jobs, dtype=np.int64)
        self.done = np.zeros(jobs, dtype=np.int64)  # segments
        # The same, by the level that holds them.
        self.saved = np.zeros((jobs, schedule.levels), dtype=np.int64)
        self.pending = np.full(jobs, -1)  # level to restart from
        self.held = np.zeros(jobs)  # bytes in the staging memory
        self.saving_then = np.zeros((jobs, schedule.levels))  # `saving` when `saved` was reached
        failures.start(jobs, rng)
        if repairs is not None:
            repairs.start(jobs, failures.nodes_max, rng)
        self.fail_at, self.need, self.nodes = failures.next(np.arange(jobs), self.now)

    def step(self, i):
        stop = np.minimum(self.fail_at[i], self.horizon_s)
        wanted = np.where(self.pending[i] >= 0, self.restarts_s[self.pending[i]], 0.0)
        up = self.now[i] + wanted <= stop
        begun = np.minimum(self.now[i] + wanted, stop)
        self.restart[i] += begun - self.now[i]
        self._drain(i, begun - self.now[i])
        self.pending[i[up]] = -1
        end, at, moved, part = self._work(i, begun, stop, up)
        finished = end == self.segments[i]
        self.computed[i] = np.where(finished, (end - 1) * self.pace.interval_s[i] + self.last_s[i],
                                    self.computed[i])
        self._save(i, end)
        self.now[i] = at
        over = ~finished & ~moved & (at >= self.horizon_s)
        self.computed[i[over]] = (end * self.pace.interval_s[i] + np.clip(part, 0.0,
            self.pace.interval_s[i]))[over]
        self.running[i[finished | over]] = False
        failed = ~finished & ~moved & ~over
        self._fail(i[failed])

    def _work(self, i, begun, stop, up):
        """(segments done, when, whether the copy may go on at once, what it has computed beyond
        them).
        """
        done, budget = self.done[i], stop - begun
        if self.schedule.staging is not None:
            return self._work_staged(i, begun, stop, up)
        final = self.segments[i] - 1
        rest = self.pace.spent(i, final) - self.pace.spent(i, done) + self.last_s[i]
        finished = up & (rest <= budget)
        end = np.minimum(final, self.pace.furthest(i, done, np.minimum(budget, rest)))
        end = np.where(finished, final, end)
        self.saving[i] += self.pace.saving(end) - self.pace.saving(done)
        part = budget - (self.pace.spent(i, end) - self.pace.spent(i, done))
        return end + finished, np.where(finished, begun + rest, stop), np.zeros(len(i),
            dtype=bool), part

    def _work_staged(self, i, begun, stop, up):
        """One segment and its checkpoint: the next staged one's cost depends on what the memory
        still holds.
        """
        memory, done = self.schedule.staging, self.done[i]
        last = done == self.segments[i] - 1
        level = self.schedule.level_after(done + 1)
        computing, own = np.where(last, self.last_s[i],
                                  self.pace.interval_s[i]), self.costs_s[level]
        held = staging.drained(memory, self.held[i], computing + own)
        staged, full = staging.absorb(memory, held)
        passes = level == self.schedule.levels - 1
        cost = np.where(last, 0.0, own + np.where(passes, staged, 0.0))
        fits = up & (begun + computing + cost <= stop)
        saves = fits & ~last
        self.saving[i] += np.where(saves, cost, 0.0)
        reached = saves[:, None] & (np.arange(self.schedule.levels) <= level[:, None])
        self.saving_then[i] = np.where(reached, self.saving[i][:, None], self.saving_then[i])
        left = staging.drained(memory, self.held[i], np.where(fits, computing + cost, stop - begun))
        self.held[i] = np.where(saves & passes, full, left)
        return done + fits, np.where(fits, begun + computing + cost, stop), saves, stop - begun

    def _save(self, i, end):
        self.done[i] = end
        self.saved[i] = np.maximum(self.saved[i], end[:, None] // self.every * self.every)

    def _drain(self, i, time_s):
        if self.schedule.staging is not None:
            self.held[i] = staging.drained(self.schedule.staging, self.held[i], time_s)

    def _fail(self, i):
        """Back to the newest checkpoint that the failure left, as soon as there are nodes."""
        need = np.minimum(self.need[i], self.schedule.levels - 1)
        back = self.saved[i, need]
        self.count[i] += 1
        if self.schedule.staging is None:
            self.saving[i] = self.pace.saving(back)
        else:
            self.saving[i] = self.saving_then[i, need]
            self.saving_then[i] = np.minimum(self.saving_then[i], self.saving[i][:, None])
        self.done[i] = back
        self.saved[i] = np.minimum(self.saved[i], back[:, None])
        self.pending[i] = np.maximum(self.pending[i], need)
        if self.repairs is not None:
            begun = self.now[i] + self.repairs.lose(i, self.now[i], self.nodes[i])
            begun = np.minimum(begun, self.horizon_s)
            self.waiting[i] += begun - self.now[i]
            self._drain(i, begun - self.now[i])
            self.now[i] = begun
        self.fail_at[i], self.need[i], self.nodes[i] = self.source.next(i, self.now[i])

    def outcome(self) -> Outcome:
        rework = self.now - self.computed - self.saving - self.restart - self.waiting
        parts = (self.now, self.computed, self.saving, np.maximum(rework, 0.0), self.restart,
                 self.waiting)
        return Outcome(*parts, self.count)
