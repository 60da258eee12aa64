"""`backstay run --transparent -- mpirun -n 2 PROGRAM`: an unmodified program of MPI is killed, and
goes on from a cut.
"""

import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from killed import kill_and_compare
from ranks import HERE, goes_on_from_a_cut, line, wait_for_version
from transparent import nothing_is_left, program, seed, start  # noqa: F401 (some are fixtures)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
launchers = pytest.mark.parametrize("launcher", HERE)
RANKS = 2  # waiting ranks take a core each
STEPS = 400
PAUSE_MS = 20  # so that it takes some cuts in its life, on any machine


def built(folder, name, launcher):
    path = Path(PROGRAM).resolve().parents[2] / "tests" / folder / f"{name}.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


def halo(launcher):
    return built("lower_half", "halo", launcher)


def sums(world):
    """What each rank has written, without the files."""
    found = {path.name: path.read_text() for path in world.folder.glob("sums.*")}
    for name in found:
        (world.folder / name).unlink()
    return found


@launchers
@pytest.mark.parametrize("victim", ["program", "companion"])
def test_a_program_of_mpi_goes_on_from_a_cut(world, launcher, victim):
    """Killed among messages and collective calls it prints what an undisturbed run prints."""
    words = line(launcher, RANKS, halo(launcher), STEPS, PAUSE_MS)
    victims = {"program": "backstay-boot", "companion": "backstay-companion"}
    goes_on_from_a_cut(world, words, STEPS, victims[victim])


@launchers
@pytest.mark.parametrize("pattern, steps", [("pairs", 2000), ("merges", 1200)])
def test_communicators_of_some_ranks_alone_come_back(world, launcher, pattern, steps):
    """Killed at random moments, among calls that make communicators of a group and between two."""
    program = built("capture_cut", "groups", launcher)
    words = line(launcher, RANKS, program, pattern, steps, "sums")
    kill_and_compare(world, words, lambda: sums(world))


def end(running):
    """It saves the program once more, and ends."""
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=100)
    assert running.returncode == 143, told
    return told


@pytest.mark.skipif(not {"mpich", "openmpi"} <= set(HERE), reason="one MPI only")
@pytest.mark.parametrize("launcher", ["mpich", "openmpi"])
def test_a_program_of_one_mpi_goes_on_under_the_other(world, launcher):
    """Saved among messages and collective calls, it is given the other MPI's mpirun, and prints
    what an undisturbed run prints."""
    other = {"mpich": "openmpi", "openmpi": "mpich"}[launcher]
    steps = 150
    words = [halo(launcher), steps, PAUSE_MS]
    native = subprocess.run(list(map(str, line(launcher, RANKS, *words))), env=world.env,
                            cwd=world.folder, stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=100)
    expected = native.stdout.splitlines()
    assert native.returncode == 0 and len(expected) == steps, native.stderr
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
    assert set(expected) <= set(printed) and printed[-1] == expected[-1], told
