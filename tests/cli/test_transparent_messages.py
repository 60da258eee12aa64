"""`backstay run --transparent -- mpirun -n 2 between SCENARIO`: the version is of a moment between
two calls of MPI that belong together, and a restart goes on with the second one.
"""

import re
import signal
from pathlib import Path

import pytest
from between import RANKS, begin_it, ends_right, goes_on_between_two_calls, saved_between
from conftest import PROGRAM
from processes import wait_for
from ranks import HERE, line
from transparent import (  # noqa: F401 (some are fixtures)
    LIVES, nothing_is_left, seed, start, status_of)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
SCENARIOS = ("matched", "cancelled", "failed", "handled")
if LIVES >= 30:  # the soak: a message of more than 2 GiB, which lies in memory three times
    SCENARIOS += ("large",)
launchers = pytest.mark.parametrize("launcher", HERE)
scenarios = pytest.mark.parametrize("scenario", SCENARIOS)


def between(launcher, name="between"):
    path = Path(PROGRAM).resolve().parents[2] / f"tests/capture_cut/{name}.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


@launchers
@scenarios
def test_a_restart_goes_on_between_two_calls(world, launcher, scenario):
    goes_on_between_two_calls(world, line(launcher, RANKS, between(launcher), scenario))


@pytest.mark.skipif(len(HERE) < 2, reason="one MPI only")
@launchers
@scenarios
def test_it_goes_on_there_under_the_other_mpi(world, launcher, scenario):
    other = next(name for name in HERE if name != launcher)
    path, program = world.folder / "out", between(launcher)
    with open(path, "w") as out:
        running = begin_it(world, line(launcher, RANKS, program, scenario), out)
        saved_between(world, running)
        running.send_signal(signal.SIGTERM)
        _, told = running.communicate(timeout=100)
        assert running.returncode == 143, told
        running = begin_it(world, line(other, RANKS, program, scenario), out)
        told = ends_right(world, running, path)
    assert "whose launcher has started it" in told, told


@launchers
def test_a_long_cut_says_for_whom_it_waits(world, launcher):
    """Rank 0 computes for 10 s, and rank 1 is in a call with it."""
    running = start(world, line(launcher, 4, between(launcher, "held"), 9, 10000),
                    "--job", "app", "--interval", 0.1)

    def cut():
        return status_of(world, "app").get("cut") or {"seconds": 0}

    wait_for(lambda: running.poll() is not None or cut()["seconds"] > 1, "a cut")
    seen = cut()
    assert seen["rank"] == 0 and seen["awaits"].startswith("rank 0 ("), seen
    for command in (["status"], ["top", "--count", 1]):
        assert "note: a cut is under way for" in world.run(*command).stdout
    wait_for(lambda: running.poll() is not None or cut()["seconds"] > 7.5, "a long cut")
    running.terminate()
    told = running.communicate(timeout=60)[1]
    assert "a cut is under way, and ranks wait for it: rank 0 (" in told, told
    assert re.search(r"s at most \(for 1\)", told), told
