"""What a job does when: segments of computing, after each a checkpoint of some level."""

import dataclasses

import numpy as np

from ..check import PlanError, not_negative, positive, whole
from .staging import Staging, checked

PERIOD_MAX = 10_000  # segments until the pattern repeats: `furthest` compares with each


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Weakest level first. After each every[j]-th segment of `base_interval_s` of computing: level
    j or above.

    `base_interval_s` may be an array, one value a job. `costs_s[j]`: a checkpoint at level j, all
    in all; `restarts_s[j]`: a restart from level j. With `staging` a checkpoint at the strongest
    level passes through its memory and takes that much longer: how long depends on what the memory
    still holds.
    """

    base_interval_s: object
    every: tuple[int, ...]
    costs_s: tuple[float, ...]
    restarts_s: tuple[float, ...]
    staging: Staging | None = None

    def __post_init__(self):
        positive("base_interval_s", self.base_interval_s)
        not_negative("costs_s", self.costs_s)
        not_negative("restarts_s", self.restarts_s)
        if not len(self.every) == len(self.costs_s) == len(self.restarts_s) >= 1:
            raise PlanError("every", "must have one value a level, as costs_s and restarts_s")
        if self.every[0] != 1 or any(b % a for a,
                                     b in zip(self.every, self.every[1:], strict=False)):
            raise PlanError("every",
                            f"must begin with 1, each a multiple of the one before, not "
                            f"{self.every}")
        whole("every", self.every[-1], 1, PERIOD_MAX)
        if self.staging is not None:
            checked(self.staging)

    @property
    def levels(self) -> int:
        return len(self.every)

    def level_after(self, segments):
        """Level of the checkpoint after that many segments."""
        return (np.asarray(segments)[..., None] % np.array(self.every) == 0).sum(axis=-1) - 1

    @property
    def saving_s(self) -> np.ndarray:
        """Time of the checkpoints after the first 0, 1, .. segments of a period."""
        levels = self.level_after(np.arange(1, self.every[-1] + 1))
        return np.concatenate([[0.0], np.cumsum(np.array(self.costs_s)[levels])])


def single(interval_s, cost_s: float, restart_s: float = 0.0,
           staging: Staging | None = None) -> Schedule:
    """One level."""
    return Schedule(interval_s, (1,), (float(cost_s),), (float(restart_s),), staging)


def nested(pattern, staging: Staging | None = None) -> Schedule:
    """A multilevel.Pattern. With `staging` its strongest level costs what the memory makes of it,
    not `cost_s`.
    """
    own = [one.cost_s for one in pattern.levels]
    costs = np.cumsum(own if staging is None else [*own[:-1], 0.0])
    return Schedule(pattern.base_interval_s, pattern.every, tuple(costs),
                    tuple(one.restart_s for one in pattern.levels), staging)


def stand_ins(levels, pattern) -> tuple[int, ...]:
    """For each of `levels` the index of the level of `pattern` that takes its failures: itself or
    the next used one.
    """
    names = [one.name for one in levels]
    used = [names.index(one.name) for one in pattern.levels]
    return tuple(int(np.searchsorted(used, j)) for j in range(len(names)))


class Pace:
    """A schedule with one interval a job: how long segments take, and how many fit."""

    def __init__(self, schedule: Schedule, jobs: int):
        self.interval_s = np.broadcast_to(np.asarray(schedule.base_interval_s, dtype=float),
                                          (jobs,))
        self._saving, self._period = schedule.saving_s, schedule.every[-1]

    def saving(self, segments):
        """Time of the checkpoints of the first `segments` segments."""
        rounds, rest = np.divmod(segments, self._period)
        return rounds * self._saving[-1] + self._saving[rest]

    def spent(self, job, segments):
        """Time of the first `segments` segments with their checkpoints."""
        return segments * self.interval_s[job] + self.saving(segments)

    def furthest(self, job, done, budget_s):
        """Segments done and saved when `budget_s` have passed since `done` were."""
        places = np.arange(1, self._period + 1)
        ends = places * self.interval_s[job][:, None] + self._saving[1:]
        # Whole periods are counted off before anything is subtracted, so that long jobs lose no
        # digits.
        rounds, place = np.divmod(done, self._period)
        begin = place * self.interval_s[job] + self._saving[place]
        more, rest = np.divmod(begin + budget_s, ends[:, -1])
        whole_periods = (rounds + more.astype(np.int64)) * self._period
        return np.maximum(done, whole_periods + (ends <= rest[:, None] * (1 + 1e-12)).sum(axis=1))
