"""Strategy choice, cost and aggregation: the papers' numbers, limits of the equations, wrong
values.
"""

import numpy as np
import pytest
from backstay.plan import aggregation, cost, strategy
from backstay.plan.check import PlanError

PAPER = {"processes": 65536, "writers": 1024}


def test_production_improvement_of_the_paper():
    assert strategy.production_improvement(1000, 20, 20) == pytest.approx(25.5)
    assert strategy.production_improvement([1000, 20], 20, 20) == pytest.approx([25.5, 1.0])


def test_blocked_time_as_printed():
    n_p, n_g, S, rate, perceived, share = 100, 4, 1e12, 1e10, 1e13, 0.25
    expected = (n_p - n_g) * (S / perceived + share * S / rate) + n_g * S / rate
    assert strategy.writer_blocked_s(n_p, n_g, S, rate, perceived, share) == pytest.approx(expected)
    assert strategy.collective_blocked_s(n_p, S, 2e10) == pytest.approx(5000)
    assert strategy.speedup(n_p, n_g, S, 2e10, rate, perceived,
                            share) == pytest.approx(5000 / expected)


def test_the_approximation_leaves_out_the_hand_over():
    blocked = np.array([0, 0.01, 0.5, 1])
    approximate = strategy.speedup_approximate(**PAPER, collective_bytes_per_s=2e9,
                                               writer_bytes_per_s=1e9, blocked_fraction=blocked)
    whole = strategy.speedup(65536, 1024, 1e12, 2e9, 1e9, np.inf, blocked)
    np.testing.assert_allclose(approximate, whole, rtol=1e-12)
    assert approximate[0] == strategy.speedup_unblocked(**PAPER, collective_bytes_per_s=2e9,
                                                        writer_bytes_per_s=1e9) == 32
    assert approximate[-1] == pytest.approx(0.5)


def test_the_blocked_share_is_what_does_not_fit():
    assert strategy.blocked_fraction_from_steps(100, 10,
                                                [20, 10, 5, 2.5]) == pytest.approx([0, 0, 0.5,
                                                    0.75])


def test_prices_of_the_paper():
    known = cost.prices()
    small, large, middle, high = (known[name] for name in ("sata-500gb-raid1", "sata-1tb-raid1",
        "mid-range-san", "high-end-san"))

    def local(one, **more):
        return cost.local_cost(1000, one.disk_price, one.disks_per_node, one.controller_price,
                               **more)

    assert (local(small) / 1000, local(large) / 1000) == (334, 644)
    assert cost.local_bytes(1000, 2, large.disk_bytes, large.usable_fraction) == 1e15
    assert cost.local_bytes(1000, 2, small.disk_bytes, small.usable_fraction) == 500e12
    assert cost.shared_cost(middle.price, 1, middle.energy_price_per_year) == 1_116_570
    assert local(small) / cost.shared_cost(high.price) == pytest.approx(0.239, abs=5e-4)
    assert local(large) / cost.shared_cost(middle.price) == pytest.approx(0.585, abs=5e-4)


def test_cost_of_energy_and_copies():
    assert cost.local_cost(10, 100, 2, 50, years=3, energy_price_per_year=7) == 10 * (250 + 21)
    assert cost.stored_per_byte(2) == 3 and cost.stored_per_byte() == 1
    assert cost.stored_per_byte(parity_data=8, parity=2) == 1.25
    systems = cost.shared_systems(54, needed_bytes=[1, 54, 55])
    assert cost.shared_cost(100, 2, 10,
                            systems) == pytest.approx([120, 120,
                                                       240]) and cost.shared_systems(54) == 1


LU = aggregation.PROFILES["lu.C.64"]


def test_the_profiles_are_those_of_the_slides():
    totals = {"lu.C.64": (7800, 184e6), "bt.C.64": (8456, 320e6), "sp.C.64": (9248, 316e6)}
    for name, (writes, data) in totals.items():
        profile = aggregation.PROFILES[name]
        # The slides' shares: 98.8 %.
        assert profile.counts.sum() * 8 == pytest.approx(writes, rel=0.013)
        assert aggregation.total_bytes(profile) == pytest.approx(data, rel=0.006)  # and 100.5 %
    assert LU.sizes[0] < 4096 < LU.sizes[1] < 512 * 1024 < LU.sizes[2]


def test_the_request_time_gives_the_shares_of_the_slide():
    found = aggregation.request_s_from_shares(LU.counts[1:], (LU.sizes * LU.counts)[1:], (65, 35),
                                              60e6)
    assert found == pytest.approx(aggregation.REQUEST_S, rel=0.03)
    times = LU.counts[1:] * found + (LU.sizes * LU.counts)[1:] / 60e6
    assert times[0] / times[1] == pytest.approx(65 / 35)


def test_requests_and_time():
    writes = aggregation.Histogram(np.array([100.0, 5000, 1e6]), np.array([1000, 10, 2]))
    plain = aggregation.without_pool(writes, 4, disk_bytes_per_s=1e7, request_s=0.01)
    data = 4 * (100 * 1000 + 5000 * 10 + 2e6)
    assert (plain.requests, plain.mean_bytes) == (48,
                                                  data / 48) and plain.disk_s == pytest.approx(0.48
                                                      + data / 1e7)
    assert aggregation.without_pool(writes, 4, merge_below_bytes=0).requests == 4 * 1012
    pooled = aggregation.with_pool(writes, 4, disk_bytes_per_s=1e7, request_s=0.01,
                                   buffer_bytes=1e6)
    assert pooled.requests == 9 and pooled.disk_s == pytest.approx(0.09 + data / 1e7)


def test_a_pool_that_holds_all_is_left_at_copy_speed():
    pooled = aggregation.with_pool(LU)
    data = aggregation.total_bytes(LU)
    assert aggregation.blocked_s(LU, 8, 1e9, 2e9, pooled) == pytest.approx(data / 2e9)
    tiny = aggregation.blocked_s(LU, 8, 1e3, 2e9, pooled)
    assert tiny == pytest.approx(pooled.disk_s,
                                 rel=1e-3) and tiny < aggregation.without_pool(LU).disk_s
    waits = [aggregation.blocked_s(LU, 8, pool, 2e9, pooled) for pool in np.geomspace(1e6, 1e9, 30)]
    assert (np.diff(waits) <= 1e-12).all()


@pytest.mark.parametrize("make, says", [
    (lambda: strategy.speedup_unblocked(4, 5, 1, 1),
     "writers must be at most the number of processes"),
    (lambda: strategy.speedup_approximate(4, 1, 1, 1, 1.5), "blocked_fraction must be from 0 to 1"),
    (lambda: strategy.production_improvement(1, 1, 0), "steps must be above 0"),
    (lambda: cost.local_cost(0, 1, 1), "nodes must be at least 1"),
    (lambda: cost.local_bytes(1, 1, 1, 0), "usable_fraction must be above 0 and at most 1"),
    (lambda: aggregation.with_pool(LU, buffer_bytes=0), "buffer_bytes must be above 0"),
    (lambda: aggregation.total_bytes(aggregation.Histogram(np.array([1.0]), np.array([0.0]))),
     "histogram must hold at least one write"),
    (lambda: aggregation.total_bytes(aggregation.Histogram(np.array([1.0, 2]), np.array([1.0]))),
     "histogram must hold"),
])  # fmt: skip
def test_bad_input(make, says):
    with pytest.raises(PlanError, match=says):
        make()
