"""`backstay run --transparent -- mpirun -n 2 PROGRAM`: an unmodified program of MPI is killed, and
goes on from a cut.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from ranks import HERE, line, wait_for_version
from transparent import (  # noqa: F401 (two are fixtures)
    WAITS, nothing_is_left, processes_of, program, seed, start)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
launchers = pytest.mark.parametrize("launcher", HERE)
RANKS = 2  # waiting ranks take a core each
STEPS = 400
PAUSE_MS = 20  # so that it takes some cuts in its life, on any machine


def halo(launcher):
    path = Path(PROGRAM).resolve().parents[2] / "tests/lower_half" / f"halo.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


@launchers
@pytest.mark.parametrize("victim", ["program", "companion"])
def test_a_program_of_mpi_goes_on_from_a_cut(world, launcher, victim):
    """Killed among messages and collective calls it prints what an undisturbed run prints."""
    words = list(map(str, line(launcher, RANKS, halo(launcher), STEPS, PAUSE_MS)))
    native = subprocess.run(words, env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=100)
    expected = native.stdout.splitlines()
    assert native.returncode == 0 and len(expected) == STEPS, native.stderr
    with open(world.folder / "out", "w") as out:
        running = start(world, words, "--job", "app", "--interval", 0.1, "--retries", 9, out=out)
        wait_for_version(world, running)
        name = {"program": "backstay-boot", "companion": "backstay-companion"}[victim]
        os.kill(processes_of(world, name)[-1], signal.SIGKILL)
        _, told = running.communicate(timeout=200)
    assert running.returncode == 0, told
    assert re.search(r"restart 1 of \d+ from version", told), told
    # What a rank printed behind the version is printed again, and its last line may be cut short.
    printed = (world.folder / "out").read_text().splitlines()
    assert set(expected) <= set(printed) and printed[-1] == expected[-1], told


def end(running):
    """It saves the program once more, and ends."""
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=100)
    assert running.returncode == 143, told
    return told


@pytest.mark.skipif(not {"mpich", "openmpi"} <= set(HERE), reason="one MPI only")
@pytest.mark.parametrize("launcher", ["mpich", "openmpi"])
def test_a_program_of_one_mpi_goes_on_under_the_other(world, launcher):
    """Saved among messages of all kinds, it is given the other MPI's mpirun, and prints what an
    undisturbed run prints."""
    path = Path(PROGRAM).resolve().parents[2] / "tests/capture_cut" / f"patterns.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    other = {"mpich": "openmpi", "openmpi": "mpich"}[launcher]
    words = [path, "mixed", "30000"]
    native = subprocess.run(list(map(str, line(launcher, RANKS, *words))), env=world.env,
                            cwd=world.folder, stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=100)
    expected = native.stdout.splitlines()
    assert native.returncode == 0 and len(expected) > 1000, native.stderr
    with open(world.folder / "out", "w") as out:
        for mpi in (launcher, other):
            command = list(map(str, line(mpi, RANKS, *words)))
            running = start(world, command, "--job", "app", "--interval", 0.1, out=out)
            if mpi == launcher:
                wait_for_version(world, running)
                end(running)
            else:
                _, told = running.communicate(timeout=200)
    assert running.returncode == 0, told
    assert "is linked with" in told and "whose launcher has started it" in told, told
    printed = (world.folder / "out").read_text().splitlines()
    assert set(expected) <= set(printed) and set(printed[-RANKS:]) == set(expected[-RANKS:]), told
