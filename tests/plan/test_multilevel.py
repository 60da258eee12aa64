"""Intervals of several levels: closed forms, all subsets and multiples by trial, and job histories
drawn.
"""

import itertools
import math

import numpy as np
import pytest
from backstay.plan import interval, multilevel
from backstay.plan.check import PlanError
from backstay.plan.multilevel import Level

THREE = (Level("local", 10, 10, 5e4), Level("protected", 40, 60, 2e5),
         Level("durable", 160, 300, 8e5))
SEED = 20_261_123


def test_one_level_is_young():
    found = multilevel.pattern([Level("durable", 300, 600, 86400)])
    assert found.base_interval_s == pytest.approx(interval.young_s(300, 86400))
    assert found.overhead_fraction == pytest.approx(math.sqrt(2 * 300 / 86400))
    assert found.restart_fraction == pytest.approx(600 / 86400) and found.every == (1,)


def test_free_intervals_give_the_published_overhead():
    free = multilevel.free_intervals_s(THREE)
    published = sum(math.sqrt(2 * one.cost_s / one.mtti_s) for one in THREE)
    assert multilevel.overhead_fraction(free, THREE) == pytest.approx(published)
    assert multilevel.overhead_fraction(free * 1.1,
                                        THREE) > published < multilevel.overhead_fraction(free
                                            * 0.9, THREE)
    found = multilevel.pattern(THREE)
    assert published <= found.overhead_fraction < 1.02 * published


def random_levels(rng, most=4):
    size = rng.integers(1, most + 1)
    return tuple(Level(f"l{j}", *10.0 ** rng.uniform((0, 0, 3), (3, 3, 7))) for j in range(size))


def test_no_subset_is_better():
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        levels = random_levels(rng)
        last = len(levels) - 1
        subsets = [(*some, last) for size in range(last + 1) for some
                   in itertools.combinations(range(last), size)]

        def published(used, levels=levels):
            return sum(math.sqrt(2 * one.cost_s / one.mtti_s) for one in multilevel.merged(levels,
                used))

        chosen = multilevel.best_subset(levels)
        assert published(chosen) == pytest.approx(min(map(published, subsets)),
                                                  rel=1e-12), f"seed {SEED}: {levels}"
        free = multilevel.free_intervals_s(multilevel.merged(levels, chosen))
        assert (np.diff(free) >= -1e-9 * free[1:]).all(), f"seed {SEED}: {levels}"


def test_no_multiples_are_better():
    levels = (Level("local", 5, 1, 2e4), Level("durable", 300, 1, 3e5))
    found = multilevel.pattern(levels)
    tried = {every: multilevel.nested(levels, (1, every))[1] for every in range(1, 60)}
    assert found.every == (1, min(tried, key=tried.get))
    base, overhead = multilevel.nested(levels, found.every)
    assert multilevel.overhead_fraction(np.array(found.intervals_s),
                                        levels) == pytest.approx(overhead)
    for other in (0.8 * base, 1.25 * base):
        assert multilevel.overhead_fraction(other * np.array(found.every), levels) > overhead


def test_failures_of_a_level_left_out_fall_to_the_next():
    found = multilevel.pattern([Level("local", 100, 10, 1e6), Level("durable", 30, 60, 1e6)])
    assert [one.name for one
            in found.levels] == ["durable"] and found.levels[0].mtti_s == pytest.approx(5e5)


def test_the_pattern_says_the_level_of_each_checkpoint():
    found = multilevel.Pattern(THREE, (1, 2, 6), 100.0, 0.1, 0.01)
    assert [found.level_at(i) for i in range(1, 13)] == [0, 1, 0, 1, 0, 2] * 2
    assert found.intervals_s == (100, 200, 600)


def drawn_overhead(pattern, segments, rng) -> tuple[float, float]:
    """(lost to checkpoints and rework, lost to restarts) per second of computing of one job, step
    by step.
    """
    rates = np.array([1 / one.mtti_s for one in pattern.levels])
    adds = np.cumsum([one.cost_s for one in pattern.levels])
    saved = [0] * len(rates)  # newest checkpoint of at least each level, in segments
    done, spent, restarts = 0, 0.0, 0.0
    left = rng.exponential(1 / rates.sum())
    while done < segments:
        level = pattern.level_at(done + 1)
        length = pattern.base_interval_s + adds[level]
        if left >= length:
            done, spent, left = done + 1, spent + length, left - length
            saved[: level + 1] = [done] * (level + 1)
            continue
        spent += left
        need = int(rng.choice(len(rates), p=rates / rates.sum()))
        done = saved[need]
        saved[:need] = [done] * need
        restarts += pattern.levels[need].restart_s  # the model's restarts do not fail
        left = rng.exponential(1 / rates.sum())
    computing = segments * pattern.base_interval_s
    return spent / computing - 1, restarts / computing


def test_the_overhead_is_that_of_drawn_jobs():
    rng, pattern = np.random.default_rng(SEED), multilevel.pattern(THREE)
    jobs = np.array([drawn_overhead(pattern, 12_000, rng) for _ in range(24)])
    mean, error = jobs.mean(axis=0), jobs.std(axis=0, ddof=1) / math.sqrt(len(jobs))
    formula = np.array([pattern.overhead_fraction, pattern.restart_fraction])
    print(f"seed {SEED}: drawn {mean}, formula {formula}, standard error {error}")
    assert (abs(mean - formula) <= 4 * error + formula * 1.5 * pattern.overhead_fraction).all()


def test_all_levels_beat_the_strongest_alone_in_drawn_jobs():
    rng = np.random.default_rng(SEED)
    alone = multilevel.pattern(multilevel.merged(THREE, (2,)))
    both = [np.mean([drawn_overhead(one, 3_000, rng)[0] for _ in range(8)]) for one
            in (multilevel.pattern(THREE), alone)]
    assert both[0] < both[1]


@pytest.mark.parametrize("levels, says", [
    ([], "levels must be 1 to 8, not 0"),
    ([THREE[0], THREE[0]], "levels must have different names"),
    ([Level("a", 0, 1, 1)], "levels a: cost must be above 0"),
    ([Level("a", 1, -1, 1)], "levels a: restart must be 0 or more"),
    ([Level("a", 1, 1, math.inf)],
     "levels a: mean time between failures must be above 0 and finite"),
])  # fmt: skip
def test_bad_input(levels, says):
    with pytest.raises(PlanError, match=says):
        multilevel.pattern(levels)
