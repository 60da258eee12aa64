"""`backstay run --transparent -- mpirun -n 2 PROGRAM`: an unmodified program of MPI is killed, and
goes on from a cut.
"""

import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from killed import kill_and_compare, run_undisturbed
from processes import wait_for
from ranks import (
    HERE, LAUNCHERS, goes_on_from_a_cut, is_saved, line, printed_undisturbed, wait_for_version)
from transparent import (  # noqa: F401 (some are fixtures)
    LIVES, kill_job, nothing_is_left, program, seed, start, status_of)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
launchers = pytest.mark.parametrize("launcher", HERE)
RANKS = 2  # waiting ranks take a core each
STEPS = 400
MANY_KILLS = 10  # of the soak
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


@pytest.mark.parametrize("launcher, pattern, steps", [
    (launcher, pattern, steps) for launcher in HERE
    for pattern, steps in (("pairs", 2000), ("merges", 1200))
    if LIVES >= MANY_KILLS or len(HERE) == 1 or (launcher == "mpich") == (pattern == "pairs")])
def test_communicators_of_some_ranks_alone_come_back(world, launcher, pattern, steps):
    """Killed at random moments, among calls that make communicators of a group and between two."""
    program = built("capture_cut", "groups", launcher)
    words = line(launcher, RANKS, program, pattern, steps, "sums")
    kill_and_compare(world, words, lambda: sums(world), grows=-2)


@launchers
def test_threads_that_are_in_mpi_at_once_come_back(world, launcher):
    """Four in each rank, killed at random moments, among blocking calls of all kinds."""
    program = built("capture_cut", "threads", launcher)
    words = line(launcher, RANKS, program, "talking", 20, "sums")
    kill_and_compare(world, words, lambda: sums(world), grows=-2)


def ends(running):
    """It saves the program once more, and ends. False: the program had ended by itself."""
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=100)
    assert running.returncode in (0, 143), told
    return running.returncode == 143


crossed = pytest.mark.skipif(len(HERE) < 2, reason="one MPI only")


def begin(world, launcher, words, out, *options):
    command = list(map(str, line(launcher, RANKS, *words)))
    return start(world, command, "--job", "app", "--interval", 0.1, *options, out=out)


def go_on_crossed(world, launcher, words, out):
    """Brought to its end under the other launcher: what was said then."""
    other = {"mpich": "openmpi", "openmpi": "mpich"}[launcher]
    running = begin(world, other, words, out)
    _, told = running.communicate(timeout=200)
    assert running.returncode == 0, told
    assert "is linked with" in told and "whose launcher has started it" in told, told
    return told


@crossed
@launchers
def test_a_program_of_one_mpi_goes_on_under_the_other(world, launcher):
    """Saved among messages and collective calls, it is given the other MPI's mpirun, and prints
    what an undisturbed run prints."""
    steps = 150
    words = [halo(launcher), steps, PAUSE_MS]
    expected = printed_undisturbed(world, list(map(str, line(launcher, RANKS, *words))))
    assert len(expected) == steps, expected
    with open(world.folder / "out", "w") as out:
        running = begin(world, launcher, words, out)
        wait_for_version(world, running)
        assert ends(running), "it ended before"
        told = go_on_crossed(world, launcher, words, out)
    printed = (world.folder / "out").read_text().splitlines()
    assert set(expected) <= set(printed) and printed[-1] == expected[-1], told


# So many steps that a version mostly comes before the end. `make soak` plays all, under both.
PATTERNS = {
    "patterns": {
        "halo": 2000,
        "edges": 6000,
        "ring": 20000,
        "wavefront": 2000,
        "exchange": 2000,
        "any_source": 6000,
        "master": 2000,
        "synchronous": 5000,
        "derived": 6000,
        "persistent": 5000,
        "probing": 5000,
        "polling": 2000,
        "transpose": 10000,
        "rows": 2000,
        "nonblocking": 2000,
        "mixed": 10000,
    },
    "opened": {"duplicates": 20000, "window": 20000, "own_request": 10000, "buffered": 10000},
    "groups": {"pairs": 3000, "all_but_one": 6000, "sides": 3000, "merges": 2000},
    "threads": {"turns": 2000, "talking": 100, "itself": 100, "matched": 200, "dividing": 20,
                "adding": 100, "grouping": 20},
}
SOME = {"nonblocking": "openmpi", "merges": "mpich", "talking": "openmpi"}  # saved under it


@crossed
@pytest.mark.parametrize("launcher, file, pattern", [
    (launcher, file, pattern) for file, patterns in PATTERNS.items() for pattern in patterns
    for launcher in LAUNCHERS if LIVES >= MANY_KILLS or SOME.get(pattern) == launcher])
def test_patterns_go_on_under_the_other(world, launcher, file, pattern):
    """One way to use MPI each: what each rank writes is what it writes undisturbed."""
    program = [built("capture_cut", file, launcher), pattern, PATTERNS[file][pattern], "sums"]
    for _ in range(5):
        words, expected = run_undisturbed(world, line(launcher, RANKS, *program),
                                          lambda: sums(world), grows=-2, at_least_s=1)
        program = words[-len(program):]
        running = begin(world, launcher, program, subprocess.DEVNULL, "--fresh")
        if is_saved(world, running) and ends(running):
            break
        sums(world)
        program[-2] = str(4 * int(program[-2]))  # it only started slowly, before
    told = go_on_crossed(world, launcher, program, subprocess.DEVNULL)
    assert sums(world) == expected and len(expected) == RANKS, told


def has_come_to(world, running, step):
    def there():
        paths = [world.folder / f"has.{rank}" for rank in range(RANKS)]
        return all(path.exists() and str(step) in path.read_text().split() for path in paths)

    wait_for(lambda: running.poll() is not None or there(), f"step {step}")


@launchers
def test_the_first_version_after_a_restart_keeps_what_did_not_change(world, launcher):
    """The real MPI begins anew in the memory that is watched."""
    words = line(launcher, RANKS, built("lower_half", "large", launcher))
    steps = [world.folder / f"step{step}" for step in (1, 2, 3)]
    for step in steps:
        step.touch()
    subprocess.run(list(map(str, words)), env=world.env, cwd=world.folder, check=True,
                   stdin=subprocess.DEVNULL, timeout=100)
    expected = sums(world)
    for path in [*steps, *world.folder.glob("has.*")]:
        path.unlink()
    world.env.update(BACKSTAY_CHECKPOINT_POLICY="request", BACKSTAY_POOL_BUFFER_MIB="1",
                     BACKSTAY_POOL_SIZE_MIB="128")
    for version in (1, 2, 3):
        running = start(world, words, "--job", "app", "--retries", 0, out=subprocess.DEVNULL)
        has_come_to(world, running, version)
        if version > 1:
            wait_for(lambda: running.poll() is not None or  # noqa: B023 (called here)
                     len(status_of(world, "app").get("processes", [])) == RANKS, "all ranks")
        done = world.run("checkpoint", "app", "--wait")
        assert done.returncode == 0, done.stderr
        assert (1 in world.json("show", "app", version)["needs"]) == (version > 1)
        kill_job(world, running)
        steps[version - 1].touch()
    done = world.run("run", "--transparent", "--job", "app", "--", *words)
    assert done.returncode == 0 and sums(world) == expected, done.stderr
