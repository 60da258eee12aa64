"""`backstay plan` through the installed program: the dispatch to Python, help and completion."""

import json
import subprocess

import pytest

from conftest import PROGRAM, ROOT

pytest.importorskip("numpy")
pytest.importorskip("typer")
if not (ROOT / ".venv/bin/python").exists():
    pytest.skip("the program starts .venv's Python", allow_module_level=True)


def test_plan_from_any_folder(world):
    found = world.json("plan", "survive", "--nodes", 2048, "--replicas", 4, "--failures", 112)
    assert 0.999 <= found["probability"] < 1
    assert world.json("plan", "model", "--system", "red-storm", "--processors", 65536, "--method",
                      "pfs")["latency_s"] > 655


def test_plan_is_listed_in_a_group_of_its_own(world):
    text = world.run("--help").stdout
    assert "Before a job runs" in text and "\n  plan " in text


@pytest.mark.parametrize("words", [["nonsense"], ["interval", "--nonsense"], ["interval"], []])
def test_wrong_usage_is_exit_code_2(world, words):
    done = world.run("plan", *words)
    assert done.returncode == 2 and done.stderr and done.stdout == "" and "Traceback" not in done.stderr


def test_completion_knows_every_question(world):
    script = world.run("completion", "bash").stdout
    listed = world.run("plan", "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    names = " ".join(line.split()[0] for line in listed.splitlines())
    assert f'words="{names}"' in script


def test_the_advice_is_accepted_as_configuration(world, tmp_path):
    words = ["--nodes", 512, "--saved", "64e9", "--storage-bandwidth", "100e9",
             "--network-bandwidth", "12e9", "--mtti", 86400]
    for copy in ("10e9",
                 "1e14"):  # the second one wants to save more often than the shortest interval
        found = world.json("plan", "advise", *words, "--copy-bandwidth", copy, "--disk-bandwidth",
                           "2e9" if copy == "10e9" else "1e13")
        (tmp_path / "backstay.toml").write_text(found["toml"])
        done = world.run("config", "--config", tmp_path / "backstay.toml", "--json")
        assert done.returncode == 0, done.stderr
        assert "interval" in done.stdout


def test_a_reader_that_leaves_and_a_full_disk(world):
    line = f"{PROGRAM} plan survive --nodes 64 --replicas 2 --json"
    done = subprocess.run(["bash", "-c", f"{line} | true; {line} | head -1"], capture_output=True,
                          text=True, env=world.env)
    assert (done.stdout, done.stderr) == ("{\n", "")
    done = subprocess.run(["bash", "-c", f"{line} >/dev/full"], capture_output=True, text=True,
                          env=world.env)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left" in done.stderr
