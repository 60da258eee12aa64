"""Latency of a checkpoint on the papers' machines, staging, the fill-time law, machines in TOML."""

import numpy as np
import pytest
from backstay.plan import fill_time, latency, model, systems
from backstay.plan.check import PlanError

MACHINES = ("red-storm", "bluegene-l", "jaguar", "petaflop")


def at(machine, processors, method="pfs", **more):
    return model.checkpoint(systems.system(machine), processors, method, **more)


def test_values_of_the_equations():
    red = at("red-storm", 65536)
    assert (round(float(red.latency_s)), round(float(red.interval_s))) == (655, 1366)
    assert red.overhead_fraction == pytest.approx(0.324, abs=5e-4)
    jaguar = at("jaguar", 131072)
    assert jaguar.latency_s >= 2 * jaguar.mtti_s
    assert jaguar.interval_s == jaguar.mtti_s == pytest.approx(1204, abs=0.5)
    assert jaguar.overhead_fraction == pytest.approx(0.708, abs=5e-4)


def test_the_slowest_part_limits():
    assert latency.direct_latency_s(4, 1e9, 1e9, 1e12, 50e9) == pytest.approx(1.0)  # links
    # bisection.
    assert latency.direct_latency_s(1000, 1e9, 1e9, 100e9, 500e9) == pytest.approx(10.0)
    # Storage, and creating files.
    assert latency.direct_latency_s(1000, 1e9, 1e9, 1e12, 50e9, 3) == pytest.approx(23.0)


def test_lightweight_start_up():
    assert latency.lightweight_startup_s(60_000) == 1.0
    assert at("red-storm", 60_000,
              "lwfs").latency_s == pytest.approx(at("red-storm", 60_000).latency_s + 1)


def test_effective_memory_is_the_geometric_series():
    ratio = 50e9 / 2.3e12
    series = 2.048e12 * sum(ratio**i for i in range(60))
    assert latency.effective_staging_bytes(2.048e12, 2.3e12, 50e9) == pytest.approx(series)
    assert latency.effective_staging_bytes(1e12, 10e9, 50e9) == np.inf


def test_the_overlay_is_continuous_and_between_network_and_storage():
    n = np.arange(1, 20_000)
    staged, direct = at("red-storm", n, "overlay"), at("red-storm", n, "lwfs")
    network = n * 0.5e9 / np.minimum(n * 4.8e9, 2.3e12) + n / 60_000
    assert (staged.latency_s <= direct.latency_s + 1e-9).all() and (staged.latency_s >= network
        - 1e-9).all()
    assert (np.diff(staged.latency_s) < 0.011).all()  # no jump where the memory is exhausted
    assert set(staged.limit) == {"link", "bisection", "staging memory"}


def test_a_drained_burst_fills_and_empties_the_memory():
    """Eq. 4.1 against a buffer that is filled and drained in small steps."""
    memory, fast, slow, data, step = 10.0, 5.0, 2.0, 60.0, 1e-4
    held, sent, elapsed = 0.0, 0.0, 0.0
    while sent < data:
        flow = min((fast if held < memory else slow) * step, data - sent)
        sent, held, elapsed = sent + flow, max(0.0,
                                               min(memory,
                                                   held + flow - slow * step)), elapsed + step
    assert latency.burst_s(data, memory, fast, slow) == pytest.approx(elapsed, rel=1e-3)


def test_the_interval_waits_for_the_staging_memory():
    point = at("red-storm", 4096, "overlay")
    room = latency.effective_staging_bytes(2.048e12, 2.3e12, 50e9)
    assert point.interval_floor_s == pytest.approx(2.048e12 / 50e9 * min(1, 4096 * 0.5e9 / room))
    assert point.interval_s == point.daly_interval_s > point.interval_floor_s
    assert at("red-storm", 65536,
              "overlay").interval_floor_s == pytest.approx(2.048e12
                  / 50e9)  # full: all of it drains
    held = at("red-storm", 65536, "overlay", staging_bytes=1e14)
    assert held.interval_s == held.interval_floor_s > held.daly_interval_s
    assert held.interval_floor_s == pytest.approx(655.36 * (1 - 50 / 2300))


@pytest.mark.parametrize("memory, processors", [(2048, 4096), (4096, 8192)])
def test_when_staging_memory_is_exhausted(memory, processors):
    """1 024 staging processors of 2 × d_max: 4K. Nodes of twice a dual-processor node's memory: 8K.
    """
    for machine in MACHINES:
        staging = memory * systems.system(machine).memory_per_processor_bytes
        fits = at(machine, processors, "overlay", staging_bytes=staging)
        not_fits = at(machine, 1.2 * processors // 1, "overlay", staging_bytes=staging)
        assert fits.limit != "staging memory" and not_fits.limit == "staging memory", machine


def test_scalars_and_arrays_agree():
    many = at("petaflop", [1, 100, 100_000], "overlay")
    for i, n in enumerate((1, 100, 100_000)):
        one = at("petaflop", n, "overlay")
        for name in many._fields:
            assert getattr(many, name)[i] == getattr(one, name), name


TABLE_I = {"stampede": 6.83, "jaguar-2009": 9.31, "titan": 11.06, "taihulight": 25.0,
           "ccr-ub": 2.30, "exascale-ssd": 1.67}


@pytest.mark.parametrize("name, minutes", TABLE_I.items())
def test_fill_time_of_table_1(name, minutes):
    one = systems.system(name)
    ideal = fill_time.ideal_checkpoint_s(one.ram_bytes, one.storage_bytes, one.device_bytes,
                                         one.device_bytes_per_s)
    assert ideal / 60 == pytest.approx(minutes, abs=0.006)
    if one.processors:
        point = model.checkpoint(one, one.processors)
        assert point.latency_s == pytest.approx(ideal * one.saved_fraction)


def test_fill_time_vectorised():
    found = fill_time.ideal_checkpoint_s([205e12, 410e12], 10e15, 2e12, 100e6)
    assert found == pytest.approx([410.0, 820.0])


# Machines in TOML
# -------------------------------------------------------------------------------------------------

GOOD = """
[mine]
processors = 1000
memory_per_processor_bytes = 4e9
storage_bytes_per_s = 20e9
"""


def test_own_machines(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(GOOD)
    known = systems.systems(path)
    assert known["mine"].saved_bytes == 2e9 and "red-storm" in known
    assert model.checkpoint(known["mine"], 1000).latency_s == pytest.approx(100)


@pytest.mark.parametrize("text, says", [
    ("[mine]\nprocesors = 3\n", "x.toml:2: unknown key procesors; did you mean processors"),
    ("[a]\nstorage_bytes = 3\n[mine]\n# here\nstorage_bytes = -1\n",
     "x.toml:5: storage_bytes must be a number above 0, up to 1e.50, not -1"),
    ("[mine]\nprocessors = 1.5\n", "x.toml:2: processors must be a whole number"),
    ("[mine]\nlink_bytes_per_s = nan\n", "x.toml:2: link_bytes_per_s must be a number above 0"),
    ("[mine]\nprocessors = true\n", "x.toml:2: processors must be a number"),
    ("[mine]\nsaved_fraction = 2\n", "x.toml:2: saved_fraction must be at most 1"),
    ("[mine]\nsource = 7\n", "x.toml:2: source must be text"),
    ("mine = 3\n", "x.toml:1: mine is outside of a table"),
    ("[mine\n", "x.toml: not TOML: .*line 1"),
])  # fmt: skip
def test_bad_toml_names_line_and_key(text, says):
    with pytest.raises(PlanError, match=says):
        systems.parse(text, "x.toml")


@pytest.mark.parametrize("make, says", [
    (lambda: at("red-strom", 10), "did you mean red-storm"),
    (lambda: at("red-storm", 0), "processors must be at least 1"),
    (lambda: at("red-storm", 10, "nfs"), "method must be one of pfs, lwfs, overlay"),
    (lambda: at("stampede", 10, "overlay"), "stampede has no network bandwidth"),
    (lambda: at("ccr-ub", 10), "does not say the memory of a processor"),
    (lambda: at("red-storm", 10, "overlay", staging_bytes=0), "staging_bytes must be above 0"),
    (lambda: fill_time.ideal_checkpoint_s(0, 1, 1, 1), "ram_bytes must be above 0"),
    (lambda: fill_time.ideal_checkpoint_s(1, 1, 1, 1, 2), "checkpoint_bytes must not be larger"),
])  # fmt: skip
def test_bad_input(make, says):
    with pytest.raises(PlanError, match=says):
        make()
