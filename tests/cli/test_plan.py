"""`backstay plan` through the installed program: the dispatch to Python, help and completion."""

import pytest

from conftest import ROOT

pytest.importorskip("numpy")
pytest.importorskip("typer")
if not (ROOT / ".venv/bin/python").exists():
    pytest.skip("the program starts .venv's Python", allow_module_level=True)


def test_plan_from_any_folder(world):
    found = world.json("plan", "survive", "--nodes", 2048, "--replicas", 4, "--failures", 112)
    assert 0.999 <= found["probability"] < 1
    assert world.json("plan", "model", "--system", "red-storm", "--processors", 65536, "--method", "pfs")["latency_s"] > 655


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
    assert f'plan) options="--help" words="{names}"' in script
