"""`backstay tune`: the settings that it tries, which one it takes, and heat under MPICH."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT
from processes import processes, wait_for

pytest.importorskip("numpy")
pytest.importorskip("typer")
sys.path.insert(0, str(ROOT / "python"))

from backstay.plan import sweep  # noqa: E402
from backstay.plan.sweep import Measured, Setting  # noqa: E402

HEAT = pathlib.Path(os.environ.get("BACKSTAY_TEST_HEAT", "/nowhere")) / "mpich/heat"
with_mpich = pytest.mark.skipif(not HEAT.exists() or shutil.which("mpiexec.mpich") is None,
                                reason="the heat example was not built with MPICH")
STEPS = str(10**9 + os.getpid())  # tells these ranks from those of other tests
FOREVER = ("--", "mpiexec.mpich", "-n", "2", HEAT, STEPS, "256", "256")


def ranks_left():
    return [pid for pid, words in processes() if STEPS.encode() in words]


@pytest.fixture
def tune(world):
    """Starts the command in Python, as `backstay tune` does; the folder is `world.folder/shared`.
    """
    (world.folder / "shared").mkdir()

    def start(*words):
        return subprocess.Popen(
            [sys.executable, "-m", "backstay.cli", "tune", *map(str, words)],
            env={**world.env, "PYTHONPATH": str(ROOT / "python")}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=world.folder)

    def run(*words):
        process = start(*words)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        return process.returncode, out, err

    run.start = start
    return run


def measured(setting, blocked_s, durable_s, ranks=16):
    return Measured(setting, ranks, 4, 1e9, blocked_s, durable_s)


def test_the_settings_are_those_of_the_paper():
    assert list(map(str, sweep.settings(8, sweep.NAMES))) == [
        "file_per_process", "collective files=1", "collective files=2", "collective files=8",
        "writers ranks_per_writer=2", "writers ranks_per_writer=4", "writers ranks_per_writer=8"]
    assert [one.files for one in sweep.settings(2, ["collective"])] == [1, 2]
    assert sweep.settings(1, ["writers"]) == []


def test_the_least_blocked_is_best_and_bandwidth_breaks_ties():
    slow = measured(Setting("collective", 4), 2.0, 2.0)
    writers = [measured(Setting("writers", 0, each), blocked_s, durable_s)
               for each, blocked_s, durable_s in ((2, 1.0, 9.0), (4, 1.04, 4.0), (8, 1.5, 1.0))]
    assert sweep.best([slow, *writers]) is writers[1]
    assert sweep.shared_file([slow, *writers]) == [Setting("writers", 1, 4)]
    assert sweep.shared_file([slow]) == []
    assert list(map(str, sweep.finer([slow, *writers]))) == [
        "writers ranks_per_writer=4 buffer_mib=16", "writers ranks_per_writer=4 buffer_mib=256"]
    assert list(map(str, sweep.finer([slow]))) == ["collective files=4 align_kib=1024"]


def test_the_fragment_is_a_configuration():
    text = sweep.toml('/a "b"', Setting("writers", 1, 8, align_kib=1024))
    assert tomllib.loads(text) == {
        "durable": {"dir": '/a "b"'},
        "strategy": {"name": "writers", "files": 1, "ranks_per_writer": 8, "align_kib": 1024}}


@with_mpich
def test_heat_is_tuned_and_nothing_stays(tune, world):
    pytest.importorskip("matplotlib")
    code, out, err = tune("shared", "--versions", 3, "--only", "file_per_process", "--only",
                          "collective", "--json", "--figure", "files.svg", *FOREVER)
    assert code == 0, err
    found = json.loads(out)
    assert [one["setting"] for one in found["settings"][:3]] == [
        "file_per_process", "collective files=1", "collective files=2"]
    for one in found["settings"]:
        assert one["ranks"] == 2 and one["versions"] >= 2 and one["bytes"] > 256 * 256 * 8
        assert 0 < one["blocked_s"] < 30 and one["bytes_per_s"] > 0
    assert tomllib.loads(found["toml"])["durable"]["dir"] == str(world.folder / "shared")
    assert "3 of at most 7: collective files=2: blocked" in err
    assert "files of a version" in (world.folder / "files.svg").read_text()
    assert list((world.folder / "shared").iterdir()) == [] and not ranks_left()


@with_mpich
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_of_it(tune, world, number):
    shared = world.folder / "shared"
    process = tune.start("shared", "--versions", 1000, *FOREVER)
    wait_for(lambda: list(shared.glob("tune-*/v*")), "a version", 30)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number and "stopped" in err
    assert list(shared.iterdir()) == [] and not ranks_left()


def test_a_program_without_a_version_is_shown(tune):
    code, _, err = tune("shared", "--", "sh", "-c", "echo so it goes; exit 5")
    assert code == 1 and "0 of at least 2 versions, the program ended with code 5" in err
    assert "did a rank call Backstay?" in err and "\n    so it goes\n" in err
    code, out, _ = tune("shared", "--", "false", "--json")  # the program's option, not ours
    assert (code, out) == (1, "")
    code, out, _ = tune("shared", "--timeout", 1, "--json", "--", "sleep", "60")
    assert code == 1 and "no more within 1 s" in json.loads(out)["error"]["message"]


@pytest.mark.parametrize("words, code, says", [
    (("shared",), 2, "there is no command"), (("none", "--", "true"), 3, "none: no such folder"),
    (("shared", "--", "no-such-launcher", "-n", "2"), 127, "no-such-launcher: no such program"),
    (("shared", "--only", "writer", "--", "true"), 2, "file_per_process, collective, writers"),
    (("shared", "--figure", "a.pdf", "--", "true"), 2, "must end in .png or .svg"),
    (("shared", "--versions", "1", "--", "true"), 2, "--versions"),
    (("shared", "--dry-run", "--", "true"), 2, "no number of ranks")])  # fmt: skip
def test_what_cannot_be_done_is_said(tune, words, code, says):
    found = tune(*words)
    assert (found[0], found[1]) == (code, "") and says in found[2]


def test_the_settings_are_listed_and_none_is_run(tune):
    code, out, _ = tune("shared", "--dry-run", "--", "false", "-n", "4")
    assert code == 0 and out.splitlines()[0] == "file_per_process" and len(out.splitlines()) == 5


@pytest.mark.skipif(not (ROOT / ".venv/bin/python").exists(),
                    reason="the program starts .venv's Python")
def test_options_of_the_command_are_not_ours(world):
    done = world.run("tune", world.folder, "--dry-run", "--", "false", "-n", "4", "--config", "no")
    assert (done.returncode, done.stderr) == (0, "")
