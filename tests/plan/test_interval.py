"""Best interval and expected time: values of the papers, limits, and the process itself drawn."""

import math

import numpy as np
import pytest
from backstay.plan import interval, wall_clock
from backstay.plan.check import PlanError

COSTS = np.array([1.0, 30, 300, 3000])
MTTIS = np.array([3600.0, 86400, 1e6])[:, None]
SEED = 20_261_122


def test_the_equation_as_printed():
    M, R, tau, delta, T = 86400.0, 600.0, 7000.0, 300.0, 1e6
    printed = M * math.exp(R / M) * (math.exp((tau + delta) / M) - 1) * (T / tau - delta
        / (tau + delta))
    assert wall_clock.wall_clock_s(tau, delta, M, T, R) == pytest.approx(printed, rel=1e-12)


def test_the_parts_add_up():
    parts = wall_clock.split(np.array([600.0, 7000, 50000]), 300, MTTIS, 1e6, 600)
    np.testing.assert_allclose(sum(parts[:4]), parts.wall_clock_s, rtol=1e-12)
    np.testing.assert_allclose(parts.failures,
                               parts.wall_clock_s / np.broadcast_to(MTTIS, parts.failures.shape))
    assert (np.array(parts[:4]) >= 0).all()


def drawn_parts(rng, tau, delta, mtti, solve, restart):
    """One job, step by step: (checkpoint, rework, restart, wall clock) in s."""
    segments = [tau + delta] * (round(solve / tau) - 1) + [tau]
    time, restarts, failures = 0.0, 0.0, 0
    for length in segments:
        left = rng.exponential(mtti)
        while left < length:
            time, failures = time + left, failures + 1
            while (left := rng.exponential(mtti)) < restart:
                time, restarts, failures = time + left, restarts + left, failures + 1
            time, restarts, left = time + restart, restarts + restart, rng.exponential(mtti)
        time += length
    checkpoint = delta * (len(segments) - 1)
    return checkpoint, time - solve - checkpoint - restarts, restarts, time, failures


def test_the_parts_are_those_of_the_process():
    rng = np.random.default_rng(SEED)
    tau, delta, mtti, solve, restart = 2000.0, 300.0, 6000.0, 40000.0, 500.0
    jobs = np.array([drawn_parts(rng, tau, delta, mtti, solve, restart) for _ in range(4000)])
    expected = wall_clock.split(tau, delta, mtti, solve, restart)
    mean, error = jobs.mean(axis=0), jobs.std(axis=0) / math.sqrt(len(jobs))
    formula = np.array([expected.checkpoint_s, expected.rework_s, expected.restart_s,
                        expected.wall_clock_s, expected.failures])
    print(f"seed {SEED}: drawn {mean}, formula {formula}, standard error {error}")
    # Eq. 3.1 counts the last interval, which has no checkpoint, as a share of a full one: within 1
    # %.
    assert (abs(mean - formula) <= 4 * error + 0.01 * formula).all()


def test_known_values():
    assert interval.young_s(300, 86400) == pytest.approx(7200)
    assert interval.daly_first_order_s(300, 86400) == pytest.approx(6900)
    # papers/README.md.
    assert interval.daly_s(655.36, 2407.65380859375) == pytest.approx(1366.4, abs=0.05)
    assert interval.daly_s(2912.7, 1203.83) == 1203.83  # δ ≥ 2M
    assert interval.daly_first_order_s(100, 200) == 200  # δ ≥ M/2


def test_the_long_job_interval_solves_its_equation():
    x = interval.long_job_s(COSTS, MTTIS) / MTTIS
    np.testing.assert_allclose(x + np.expm1(-x - COSTS / MTTIS), 0, atol=1e-15)
    assert interval.long_job_s(1e5, 1e3) == pytest.approx(1e3)
    assert interval.long_job_s(1e-9, 1e9) == pytest.approx(math.sqrt(2), rel=1e-6)


def test_daly_is_close_to_the_minimum_of_a_long_job():
    exact = interval.long_job_s(COSTS, MTTIS)
    used = COSTS / MTTIS < 0.1
    assert used.sum() >= 10
    np.testing.assert_allclose(interval.daly_s(COSTS, MTTIS)[used], exact[used], rtol=2e-3)
    np.testing.assert_allclose(wall_clock.exact_s(COSTS, MTTIS, 1e12), exact, rtol=1e-5)


def test_nothing_is_better_than_the_numerical_minimum():
    for solve in (1e3, 2e4, 1e6):
        best = wall_clock.exact_s(COSTS, MTTIS, solve)
        assert (best <= solve).all()
        least = wall_clock.wall_clock_s(best, COSTS, MTTIS, solve)
        for other in np.geomspace(solve / 1e5, solve, 400):
            assert (wall_clock.wall_clock_s(other, COSTS, MTTIS, solve) >= least
                    * (1 - 1e-12)).all()


def test_a_job_shorter_than_the_interval_is_not_saved():
    assert wall_clock.exact_s(300, 86400, 1000) == pytest.approx(1000)
    assert wall_clock.split(1000, 300, 86400, 1000).checkpoint_s == 0


def test_overflow_is_infinity_for_functions():
    assert wall_clock.wall_clock_s(1, 1e6, 1, 1e6) == math.inf


@pytest.mark.parametrize("arguments, says", [
    ((0, 300, 86400, 1e6), "interval_s must be above 0"),
    ((10, -1, 86400, 1e6), "cost_s must be above 0"),
    ((10, 300, math.nan, 1e6), "mtti_s"), ((10, 300, math.inf, 1e6), "mtti_s"),
    ((10, 300, 1, "x"), "solve_s must be a number"),
    ((10, 300, 86400, 1e6, -1), "restart_s must be 0 or more"),
    ((2e6, 300, 86400, 1e6), "interval_s must not be longer"),
    (([10, 0], 300, 86400, 1e6), "interval_s must be above 0 and finite, not 0"),
])  # fmt: skip
def test_bad_input(arguments, says):
    with pytest.raises(PlanError, match=says):
        wall_clock.split(*arguments)
