"""The simulator: jobs whose every second is known, invariants, and every closed model of the
planner.
"""

import math
import time

import numpy as np
import pytest
from backstay.plan import protection
from backstay.plan.check import PlanError
from backstay.plan.simulate import failures, job, repair, schedule, staging, validate
from backstay.plan.simulate.check import Check
from backstay.plan.simulate.estimate import Estimate, mean

SEED = 20_261_125


def played(plan, times, **options):
    needs = options.pop("needs", None)
    return job.run(plan, failures.Listed(times, needs=needs, nodes=options.pop("nodes", None)),
                   jobs=1, **options)


def seconds(found):
    return [float(part[0]) for part in found]


# Jobs by hand: wall clock, solve, checkpoint, rework, restart, waiting, failures
# -------------------------------------

def test_without_failures_all_but_the_last_segment_are_saved():
    assert seconds(played(schedule.single(100, 10, 5), [], solve_s=350)) == [380, 350, 30, 0, 0, 0,
        0]
    assert seconds(played(schedule.single(100, 10, 5), [], solve_s=300)) == [320, 300, 20, 0, 0, 0,
        0]


def test_a_failure_repeats_what_was_not_saved():
    plan = schedule.single(100, 10, 5)
    assert seconds(played(plan, [150], solve_s=300)) == [365, 300, 20, 40, 5, 0, 1]
    assert seconds(played(plan, [105], solve_s=300)) == [430, 300, 20, 105, 5, 0,
        1], "in the middle of a checkpoint"
    assert seconds(played(plan, [110], solve_s=300)) == [325, 300, 20, 0, 5, 0, 1], "just saved"


def test_a_restart_that_fails_begins_anew():
    assert seconds(played(schedule.single(100, 10, 5), [150, 153], solve_s=300)) == [368, 300, 20,
        40, 8, 0, 2]


def test_a_failure_goes_back_to_the_level_that_survives_it():
    plan = schedule.Schedule(100, (1, 2, 4), (1, 10, 50), (2, 20, 200))
    clean = [400 + 1 + 10 + 1, 400, 12, 0, 0, 0, 0]
    assert seconds(played(plan, [], solve_s=400)) == clean
    # Saved: level 0 at 101, level 1 at 211, level 0 at 312; at 350 the third segment counts, or
    # not, or nothing does.
    assert seconds(played(plan, [350], solve_s=400, needs=[0])) == [412 + 38 + 2, 400, 12, 38, 2,
        0, 1]
    assert seconds(played(plan, [350], solve_s=400, needs=[1])) == [412 + 139 + 20, 400, 12, 139,
        20, 0, 1]
    assert seconds(played(plan, [350], solve_s=400, needs=[2])) == [412 + 350 + 200, 400, 12, 350,
        200, 0, 1]
    assert seconds(played(plan, [313], solve_s=400, needs=[0])) == [412 + 1 + 2, 400, 12, 1, 2, 0,
        1]
    # The restart from level 1 is struck by a weak failure: the local copies are gone as well.
    assert seconds(played(plan, [350, 360], solve_s=400, needs=[1, 0])) == [412 + 139 + 30, 400,
        12, 139, 30, 0, 2]


def test_at_the_horizon_what_is_computed_counts():
    plan = schedule.single(100, 10, 5)
    assert seconds(played(plan, [150], horizon_s=200)) == [200, 145, 10, 40, 5, 0, 1]
    assert seconds(played(plan, [198], horizon_s=200)) == [200, 100, 10, 88, 2, 0,
        1], "in the middle of a restart"
    assert seconds(played(plan, [], horizon_s=105)) == [105, 100, 0, 5, 0, 0,
                                                        0], "in the middle of a checkpoint"


def test_a_job_waits_when_more_nodes_are_away_than_it_has_spares():
    plan, fixed = schedule.single(100, 0, 0), repair.Repairs(50, spares=1, fixed=True)
    assert seconds(played(plan, [10, 30], solve_s=100, repairs=fixed)) == [160, 100, 0, 30, 0, 30,
        2]
    fixed = repair.Repairs(50, spares=1, fixed=True)
    assert seconds(played(plan, [10], solve_s=100, nodes=[2], repairs=fixed)) == [160, 100, 0, 10,
        0, 50, 1]
    assert seconds(played(plan, [10], solve_s=100,
                          repairs=repair.Repairs(50, spares=1, fixed=True)))[5] == 0


def test_listed_failures_begin_where_a_copy_begins():
    source = failures.Listed([100, 250], begins_s=np.array([0.0, 90.0, 260.0]))
    found = job.run(schedule.single(1000, 0, 0), source, solve_s=200, jobs=3)
    assert found.wall_clock_s.tolist() == [450.0, 360.0, 200.0] and found.failures.tolist() == [2,
        2, 0]


# Staging
# --------------------------------------------------------------------------------------------------

MEMORY = staging.Staging(100e9, 40e9, 20e9, 5e9, 1.0)


@pytest.mark.parametrize("memory",
                         [MEMORY, MEMORY._replace(memory_bytes=1e12),
                          MEMORY._replace(network_bytes_per_s=4e9)])
def test_the_fluid_is_the_limit_of_small_chunks(memory):
    cost, held = staging.absorb(memory, 0.0)
    again, held = staging.absorb(memory, staging.drained(memory, held, 3.0))
    third, _ = staging.absorb(memory, staging.drained(memory, held, 1.0))
    assert staging.by_chunks(memory, 20e6,
                             [3.0, 1.0]) == pytest.approx([float(cost), float(again),
                                 float(third)], rel=2e-3)


def test_a_checkpoint_finds_what_the_last_one_left():
    found = job.run(schedule.single(3.0, 0, 0, staging=MEMORY), failures.Listed([]), solve_s=9.0,
                    jobs=1)
    assert found.checkpoint_s[0] == pytest.approx(sum(staging.by_chunks(MEMORY, 20e6, [3.0])),
                                                  rel=2e-3)
    assert found.checkpoint_s[0] > 2 * float(staging.absorb(MEMORY, 0.0)[0])
    # Struck in the second checkpoint, restarted after 100 s: the memory is empty again.
    late = job.run(schedule.single(3.0, 0, 100, staging=MEMORY), failures.Listed([20.0]),
                   solve_s=9.0, jobs=1)
    assert late.checkpoint_s[0] == pytest.approx(26.0) and late.restart_s[0] == 100


def test_the_strongest_of_several_levels_passes_through_the_memory():
    plan = schedule.Schedule(2.0, (1, 2), (1.0, 0.0), (2.0, 100.0), MEMORY)
    chunks = staging.by_chunks(MEMORY, 20e6, [2.0 + 1.0 + 2.0])
    found = job.run(plan, failures.Listed([]), solve_s=10.0, jobs=1)
    assert found.checkpoint_s[0] == pytest.approx(2 * 1.0 + sum(chunks),
                                                  rel=2e-3) and chunks[1] > chunks[0] + 1
    # Local after 3 s until 4, durable from 7 to 20 (13 s, the memory is full), local from 23 to 24,
    # struck at 25.
    plan = schedule.Schedule(3.0, (1, 2), (1.0, 0.0), (2.0, 100.0), MEMORY)
    weak, strong = (seconds(played(plan, [25.0], solve_s=15, needs=[need])) for need in (0, 1))
    assert weak == pytest.approx([46, 15, 28, 1, 2, 0, 1]) and strong == pytest.approx([148, 15,
        28, 5, 100, 0, 1])


def test_a_memory_that_is_always_empty_is_a_fixed_cost():
    """So that levels, failures and horizons are those of jobs without staging, which are tested
    above.
    """
    rng = np.random.default_rng(SEED)
    times, needs = np.cumsum(rng.exponential(300, 4000)), rng.choice(3, 4000, p=(0.6, 0.3, 0.1))
    # Storage takes more than the network gives: 10 s.
    fast = staging.Staging(90e9, 40e9, 10e9, 20e9, 1.0)
    plans = [schedule.Schedule(40.0, (1, 2, 6), costs, (3, 9, 50), memory) for costs, memory in
             (((1, 4, 14), None), ((1, 4, 4), fast))]  # fmt: skip
    for span in ({"solve_s": 20_000}, {"horizon_s": 30_000}):
        plain, through = (job.run(plan, failures.Listed(times, np.linspace(0, 5e5, 50), needs),
                                  jobs=50, **span) for plan in plans)
        np.testing.assert_allclose(through, plain, rtol=1e-9, atol=1e-6)
        assert plain.failures.sum() > 1000


# Failures
# --------------------------------------------------------------------------------------------------

def first_gaps(source, copies=40_000):
    source.start(copies, np.random.default_rng(SEED))
    return source.next(np.arange(copies), np.zeros(copies))


@pytest.mark.parametrize("shape", [0.7, 1.0, 2.0])
def test_gaps_have_the_mean_and_spread_of_their_law(shape):
    gaps = first_gaps(failures.Renewal(1000.0, shape))[0]
    spread = math.sqrt(math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1)
    assert gaps.mean() == pytest.approx(1000,
                                        rel=0.03) and gaps.std() / gaps.mean() == pytest.approx(
                                            spread, rel=0.05)


def test_shares_of_levels_are_drawn():
    need = first_gaps(failures.Renewal(1.0, shares=(0.5, 0.3, 0.2)))[1]
    assert np.bincount(need) / len(need) == pytest.approx([0.5, 0.3, 0.2], abs=0.01)


def test_a_lost_rack_needs_what_its_copies_leave():
    racks = protection.Partners(64, domain_nodes=8, replicas=1)
    _, need, nodes = first_gaps(failures.NodeLosses(1.0, racks, (0, 1), (0.5, 0.5)), 4000)
    assert set(need) == {0, 1} and set(nodes) == {0, 8}, "other racks hold the copies"
    blind = protection.Partners(64, domain_nodes=8, ignore_domains=True, replicas=1)
    assert set(first_gaps(failures.NodeLosses(1.0, blind, (0, 1), (0.5, 0.5)), 4000)[1]) == {0, 2}


# Jobs as a whole
# --------------------------------------------------------------------------------------------------

def test_the_parts_add_up_and_a_seed_repeats():
    plan = schedule.Schedule(50.0, (1, 3), (1, 9), (2, 20))

    def run(seed):
        source = failures.Renewal(400, 0.7, (0.7, 0.3))
        return job.run(plan, source, solve_s=5000, jobs=200, seed=seed,
                       repairs=repair.Repairs(900, 1))

    found = run(3)
    assert sum(found[1:6]) == pytest.approx(found.wall_clock_s) and (np.array(found[1:6])
        >= 0).all()
    assert (found.solve_s == 5000).all() and found.waiting_s.any()
    assert (run(3).wall_clock_s == found.wall_clock_s).all() and (run(4).wall_clock_s
        != found.wall_clock_s).any()


def test_everything_at_once_adds_up():
    """Levels, staging memory, losses of several nodes at once on real placements, in bunches,
    repairs with spares.
    """
    plan = schedule.Schedule(50.0, (1, 3, 6), (1.0, 9.0, 2.0), (2.0, 20.0, 90.0), MEMORY)
    scheme = protection.RandomReplicas(32, replicas=1)

    def run(seed):
        source = failures.NodeLosses(900.0, scheme, (0, 1, 3), (0.3, 0.5, 0.2), shape=0.7)
        return job.run(plan, source, solve_s=5000, jobs=200, seed=seed,
                       repairs=repair.Repairs(900, 2))

    found = run(3)
    assert sum(found[1:6]) == pytest.approx(found.wall_clock_s) and (np.array(found[1:6])
        >= 0).all() and (found.solve_s == 5000).all()
    # 99 segments are saved: 66 local, 17 protected, 16 durable, which take 2 s and 12 to 20 s in
    # the memory.
    least, most = (66 * 1.0 + 17 * 9.0 + 16 * (2.0 + cost) for cost in (12.0, 21.0))
    assert (least < found.checkpoint_s).all() and (found.checkpoint_s
                                                   < most).all() and found.waiting_s.any() and found.failures.sum() > 500
    assert (run(3).wall_clock_s == found.wall_clock_s).all() and (run(4).wall_clock_s
        != found.wall_clock_s).any()


def test_every_copy_may_have_an_interval_of_its_own():
    tau = np.array([20.0, 100.0, 700.0])
    together = job.run(schedule.single(tau, 5, 10), failures.Listed([333, 999, 1500]),
                       solve_s=2000, jobs=3)
    alone = [played(schedule.single(one, 5, 10), [333, 999, 1500], solve_s=2000).wall_clock_s[0]
             for one in tau]
    assert together.wall_clock_s.tolist() == alone


def test_thousands_of_days_take_seconds():
    begun = time.process_time()
    found = job.run(schedule.single(7001, 300, 600), failures.Renewal(86400), solve_s=30 * 86400,
                    jobs=1000)
    assert found.wall_clock_s.sum() > 30_000 * 86400 and time.process_time() - begun < 5


@pytest.mark.parametrize("call, says", [
    (lambda: job.run(schedule.single(0, 1), failures.Renewal(1), solve_s=1),
     "base_interval_s must be above 0"),
    (lambda: job.run(schedule.single(1, 1), failures.Renewal(1)), "solve_s or horizon_s"),
    (lambda: job.run(schedule.single(1e-12, 1e-15), failures.Renewal(1), solve_s=1e5),
     "base_interval_s is too short for a job of 1e\\+05 s"),
    (lambda: job.run(schedule.single(1, 1), failures.Renewal(1), solve_s=math.nan),
     "solve_s must be above 0"),
    (lambda: schedule.Schedule(1, (1, 2, 3), (1, 1, 1), (1, 1, 1)),
     "every must begin with 1, each a multiple"),
    (lambda: schedule.Schedule(1, (1,), (1, 2), (1,)), "every must have one value a level"),
    (lambda: failures.Renewal(1, 0.01), "shape must be from 0.05"),
    (lambda: failures.Renewal(1, shares=(0.5,)), "shares must add up to 1"),
    (lambda: failures.Listed([2, 1]), "times_s must be finite and grow"),
    (lambda: repair.Repairs(0), "repair_s must be above 0"),
    (lambda: staging.by_chunks(MEMORY, 1e12), "chunk_bytes must fit"),
    (lambda: mean([1.0]), "jobs must be at least 2"),
])  # fmt: skip
def test_bad_input(call, says):
    with pytest.raises(PlanError, match=says):
        call()


# The closed models
# --------------------------------------------------------------------------------------------------

def test_every_model_agrees_with_its_simulation():
    for check in validate.checks(600, SEED):
        assert check.agrees, f"seed {SEED}: {check}"


def test_a_wrong_formula_is_found():
    assert Check("", "", 1.0, Estimate(1.05, 0.98, 1.12, 9), 0.0).agrees
    assert not Check("", "", 0.95, Estimate(1.05, 0.98, 1.12, 9), 0.0).agrees
    assert Check("", "", 0.95, Estimate(1.05, 0.98, 1.12, 9), 0.05).agrees
    for check in validate.checks(600, SEED):
        off = check._replace(formula=(1 + max(0.25, 3 * check.tolerance)) * check.formula)
        assert not off.agrees, f"{check.name}: {off.formula} passes for {check.simulated}"
