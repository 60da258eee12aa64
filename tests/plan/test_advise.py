"""Advice: numbers by hand, the choice of protection, inputs from the probe and from a log, a
fragment that can be pasted.
"""

import json
import pathlib
import re
import statistics
import tomllib

import made_log
import pytest
from backstay.plan import interval, levels
from backstay.plan.simulate import advise
from runner import result, run, strict

DOCS = pathlib.Path(__file__).parents[2] / "docs"
MACHINE = advise.Machine(512, 64e9, 10e9, 2e9, 12e9, 100e9)
SPEEDS = ("--copy-bandwidth", 10e9, "--disk-bandwidth", 2e9, "--network-bandwidth", 12e9)
BASE = ("--nodes", 512, "--saved", 64e9, "--storage-bandwidth", 100e9)


@pytest.fixture(autouse=True)
def no_probe(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_times_are_those_of_the_page():
    advice = advise.advise(MACHINE, advise.Failures(86400.0))
    plan, extra = advice.plan, advice.plan.choice.extra
    away = max(64 / 12 * plan.choice.sent, 32 * extra)
    back = max(64 / 12 * plan.choice.read, 32)
    assert plan.blocked_s == 6.4 and plan.interval_s == pytest.approx(interval.long_job_s(6.4,
        86400))
    assert plan.lag_s == pytest.approx((32, 32 + away,
                                        32 + away + 327.68)) and plan.restart_s == pytest.approx(
                                            (32, back, 327.68))
    assert plan.durable_every == 1 and advice.stage_nodes == 128 and advice.store_bytes == pytest.approx(3 * 64e9 * (1 + extra))


def test_parity_sends_each_byte_to_every_parity_node():
    """On a slow network the time is that of what is sent and read, not of what is stored."""
    found = advise.Failures(86400.0)
    ways = {one.name: levels.plan(MACHINE._replace(network_bytes_per_s=1e9), found, one) for one
            in levels.choices(512, found)}
    assert ways["parity 14+2"].lag_s[1] == ways["2 replicas"].lag_s[1] == pytest.approx(32 + 2 * 64)
    assert ways["parity 14+2"].restart_s[1] == pytest.approx(14
        * 64) and ways["2 replicas"].restart_s[1] == pytest.approx(64)


def test_a_slow_drain_makes_durable_rarer_and_a_slow_disk_the_interval_longer():
    slow = advise.best(MACHINE._replace(storage_bytes_per_s=10e9), advise.Failures(86400.0))
    assert slow.durable_every == 4, "3277 s of drain in intervals of 1047 s"
    disk = advise.best(MACHINE._replace(disk_bytes_per_s=0.05e9), advise.Failures(86400.0))
    assert disk.interval_s == disk.lag_s[1] > 1200


def test_protection_grows_with_the_losses():
    few = advise.best(MACHINE, advise.Failures(86400.0, sizes={1: 1.0}))
    many = advise.best(MACHINE._replace(storage_bytes_per_s=5e9),
                       advise.Failures(86400.0, sizes={1: 0.2, 64: 0.8}))
    assert few.choice.lost_share == 0 and few.choice.name == "parity 14+2"
    assert many.choice.extra > few.choice.extra and many.choice.lost_share < 0.6


def test_small_machines_get_what_fits():
    names = {one.name for one in levels.choices(3, advise.Failures(1e5))}
    assert names == {"1 replica", "2 replicas"}


@pytest.mark.parametrize("mtti", [20_000.0, 86_400.0])
def test_the_first_order_is_near_the_simulation(mtti):
    known = advise.Failures(mtti, software_share=0.3)
    plan, efficiency = advise.advise(MACHINE, known)[:2]
    assert 1 / efficiency.mean - 1 == pytest.approx(sum(levels.lost(plan, known)), rel=0.08)
    worse = advise.simulated(plan._replace(interval_s=4 * plan.interval_s), known, 1)
    assert worse.high < efficiency.low


def test_the_command_prints_what_can_be_pasted():
    found = result("advise", *BASE, *SPEEDS, "--mtti", 86400)
    configured = tomllib.loads(found["toml"])
    known = (DOCS / "guide" / "configuration.md").read_text(encoding="utf-8")
    for section, keys in configured.items():
        table = known.split(f"## [{section}]")[1].split("\n## ")[0]
        assert all(f"| `{key}` |" in table for key in keys)
    assert configured["checkpoint"]["interval_s"] == round(found["interval_s"]["local"])
    assert found["toml"] in run("advise", *BASE, *SPEEDS, "--mtti", 86400)[1]
    assert configured["protect"] == {"parity": "14,2"} and configured["durable"] == {"every": 1}
    assert 0.9 < found["efficiency"]["low"] < found["efficiency"]["high"] < 1 and "assumed" in found["notes"][0]


def test_inputs_come_from_the_probe(tmp_path):
    probe = tmp_path / "cache" / "backstay" / "probe.json"
    probe.parent.mkdir(parents=True)
    probe.write_text(json.dumps({"memory": {"copy_bytes_per_s": 10e9},
                                 "disk": {"write_bytes_per_s": 2e9}}))
    words = ("advise", *BASE, "--network-bandwidth", 12e9, "--mtti", 86400)
    assert result(*words) == result("advise", *BASE, *SPEEDS, "--mtti", 86400)
    assert result(*words, "--disk-bandwidth", 1e9)["machine"]["disk_bytes_per_s"] == 1e9
    for text in ("{}", "[]", "x", "[" * 100_000,
                 '{"memory": {"copy_bytes_per_s": 0}, "disk": {"write_bytes_per_s": 2}}'):
        probe.write_text(text)
        code, _, err = run(*words)
        assert code == 2 and f"--probe {probe}: not a result of `backstay probe`" in err and err.count("\n") == 1


@pytest.fixture
def job(tmp_path):
    """A job `lj` of 22 versions of 2 GiB, 30 s apart, that lost ranks twice."""
    made_log.write(tmp_path / "lj")
    return ("--job", "lj", "--dir", tmp_path)


WORDS = ("advise", "--nodes", 64, "--storage-bandwidth", 100e9, "--network-bandwidth", 12e9)


def test_inputs_come_from_a_jobs_own_versions(job):
    found = result(*WORDS, *job, "--mtti", 86400)
    made = [one for one in made_log.events()[0] if one["event"] == "local"]
    assert found["machine"]["saved_bytes"] == made_log.RANKS * made_log.BYTES
    assert found["machine"]["disk_bytes_per_s"] == pytest.approx(
        statistics.median(one["bytes"] / one["write_seconds"] for one in made))
    assert found["notes"][1:] == ["measured by 22 versions of job lj: saved_bytes, "
                                  "copy_bytes_per_s, disk_bytes_per_s; it lost ranks 2 times "
                                  "in 697 s of running"]  # fmt: skip
    assert result(*WORDS, *job, "--mtti", 86400, "--saved", 1e9)["machine"]["saved_bytes"] == 1e9
    observed = result(*WORDS, *job, "--nodes", 2, "--saved", 1e9)
    assert 200 / 2 < observed["mtti_s"] < 400 / 2 and "is the job's own, of one node, divided by 2 nodes: few failures" in observed["notes"][1]


def test_a_job_that_cannot_be_used(job, tmp_path):
    for words in (("--job", "none", "--dir", tmp_path),
                  ("--job", "lj", "--dir", tmp_path / "none")):
        code, out, err = run(*WORDS, *words, "--mtti", 86400)
        assert (code, out) == (3, "") and err.count("\n") == 1 and "no job" in err
    made_log.write(tmp_path / "lj", ["rubbish"])
    code, _, err = run(*WORDS, *job, "--mtti", 86400)
    assert code == 1 and "events.jsonl:1: not JSON" in err and err.count("\n") == 1
    made_log.write(tmp_path / "lj",
                   [json.dumps(one) for one in made_log.events()[0] if one["event"] != "rank_left"])
    assert "as the job saw no failure" in run(*WORDS, *job)[2]


def test_a_log_of_equal_gaps_has_no_shape(tmp_path):
    (tmp_path / "log").write_text("time,node\n0,a\n1e5,b\n2e5,c\n3e5,a\n")
    found = result("advise", *BASE, *SPEEDS, "--trace", tmp_path / "log", "--nodes", 3)
    assert (found["mtti_s"], found["weibull_shape"]) == (1e5, 100.0)
    assert "no Weibull shape of the log: the gaps are all alike" in found["notes"][-1]


@pytest.mark.parametrize("words, says", [
    (("--mtti", 1e12),
     ["the configuration takes 1e+09 s at most for mtti_s: the TOML has that instead of 1e+12 s"]),
     (("--mtti", 1e9), []),
    (("--mtti", 0.9, "--copy-bandwidth", 1e14, "--disk-bandwidth", 1e13, "--network-bandwidth",
      1e14, "--storage-bandwidth", 1e16),
     ["1 s at least for mtti_s"]),
])  # fmt: skip
def test_what_the_configuration_does_not_take_is_said(words, says):
    found = result("advise", *BASE, *SPEEDS, *words)
    notes = [note for note in found["notes"] if "configuration takes" in note]
    assert len(notes) == len(says) and all(part in note for part,
                                           note in zip(says, notes, strict=True))
    made = tomllib.loads(found["toml"])["checkpoint"]
    assert 1 <= made["mtti_s"] <= 1e9 and (bool(says) or made["mtti_s"] == found["mtti_s"])


def test_it_says_what_the_disks_cost(tmp_path):
    found = result("advise", *BASE, *SPEEDS, "--mtti", 86400)["disks"]
    assert found == {"name": "sata-500gb-raid1", "source": "paper 002, § 5.6", "sets_per_node": 1,
                     "price": 512 * 334}
    (tmp_path
     / "my.toml").write_text('[small]\nkind = "local"\ndisk_price = 10\ndisk_bytes = 50e9\n')
    found = result("advise", *BASE, *SPEEDS, "--mtti", 86400, "--prices", tmp_path / "my.toml",
                   "--local", "small")
    assert found["disks"]["sets_per_node"] == 5 and found["disks"]["price"] == 512 * 50, found[
        "local_store_bytes"]
    (tmp_path / "my.toml").write_text('[small]\nkind = "local"\ndisk_price = 10\ndisk_bytes = 1\n')
    assert "--local small: a node would need" in run("advise", *BASE, *SPEEDS, "--mtti", 86400,
                                                     "--prices", tmp_path / "my.toml", "--local",
                                                     "small")[2]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture(tmp_path, ending):
    pytest.importorskip("matplotlib")
    file = tmp_path / f"advice.{ending}"
    found = result("advise", *BASE, *SPEEDS, "--mtti", 86400, "--picture", file)
    assert found["picture"] == str(file) and file.stat().st_size > 20_000
    if ending == "svg":
        text = file.read_text("utf-8")
        assert all(word in text for word in ("efficiency (%)", "interval (s, log scale)",
                                             "share of the time (%)", "parity 14+2", "3 replicas"))
    code, _, err = run("advise", *BASE, *SPEEDS, "--mtti", 86400, "--picture",
                       tmp_path / "none" / f"x.{ending}")
    assert code == 1 and err.count("\n") == 1 and "there is no folder" in err


def test_inputs_come_from_a_log():
    words = ("advise", *BASE, *SPEEDS, "--trace", DOCS / "plan" / "failures.csv", "--nodes")
    found, larger = result(*words, 48), result(*words, 96)
    assert larger["mtti_s"] == pytest.approx(found["mtti_s"]
                                             / 2), "twice the nodes of the log fail twice as often"
    assert any("names 48 nodes" in one and "times 48/96" in one for one in larger["notes"])
    replayed = result("replay", "--trace", DOCS / "plan" / "failures.csv", "--cost", 300)
    assert (found["mtti_s"], found["weibull_shape"]) == (replayed["mtti_s"],
        replayed["weibull_shape"])
    assert found["notes"] == ["rows of the log: 85 read, 85 used, 0 left out"]


@pytest.mark.parametrize("words, option", [
    ((*BASE, *SPEEDS), "--mtti"), ((*BASE, *SPEEDS, "--mtti", 5e4, "--trace", "x"), "--mtti"),
    ((*BASE, *SPEEDS, "--mtti", 5), "--mtti"),
    ((*BASE, *SPEEDS, "--mtti", 0), "--mtti"), ((*BASE, "--mtti", 5e4), "--copy-bandwidth"),
    ((*BASE, *SPEEDS[:4], "--mtti", 5e4), "--network-bandwidth"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--nodes", 1), "--nodes"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--saved", -1), "--saved"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--software-share", 2), "--software-share"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--stage-memory", 0), "--stage-memory"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--system", 2), "--system"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--storage-bandwidth", 1e-40), "--storage-bandwidth"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--seed", -1), "--seed"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--picture", "a.jpg"), "--picture"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--local", "x"), "--local"),
    ((*BASE[:2], *BASE[4:], *SPEEDS, "--mtti", 5e4), "--saved"),
    ((*BASE, *SPEEDS, "--mtti", 5e4, "--nodes", 200_000), "--nodes"),
    ((*BASE[:3], "9e18", *BASE[4:], *SPEEDS, "--mtti", 5e4), "--mtti"),
])  # fmt: skip
def test_wrong_input_is_one_line_that_names_the_option(words, option):
    code, out, err = run("advise", *words)
    assert (code, out) == (2,
                           "") and err.count("\n") == 1 and re.match(rf"backstay plan advise: "
                                                                     rf"{option} ", err), err
    assert strict(run("advise", *words, "--json")[1])["error"]["code"] == "invalid"
