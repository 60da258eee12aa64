"""Runs of tests/capture_cut/between.c, whose ranks wait for a file between two calls of MPI that
belong together.
"""

import os
import signal

from processes import wait_for
from ranks import newest, wait_for_version
from transparent import processes_of, start

RANKS = 2  # waiting ranks take a core each


def begin_it(world, words, out):
    return start(world, list(map(str, words)), "--job", "app", "--interval", 0.1, out=out)


def saved_between(world, running):
    """Waits for a version that was begun when all ranks stood between their calls."""
    there = [world.folder / f"at.{rank}" for rank in range(RANKS)]
    wait_for(lambda: running.poll() is not None or all(one.exists() for one in there), "the ranks")
    # One may have been under way.
    wait_for_version(world, running, newest(world) + 1)


def ends_right(world, running, out):
    (world.folder / "go").touch()
    _, told = running.communicate(timeout=200)
    printed = out.read_text()
    assert running.returncode == 0, (printed, told)
    for rank in range(RANKS):
        assert f"rank {rank}: right" in printed, (printed, told)
    return told


def goes_on_between_two_calls(world, words):
    """Killed there it goes on with the second call."""
    path = world.folder / "out"
    with open(path, "w") as out:
        running = begin_it(world, words, out)
        saved_between(world, running)
        os.kill(processes_of(world)[-1], signal.SIGKILL)
        told = ends_right(world, running, path)
    assert "restart 1 of" in told, told
    # Cuts that are asked for while ranks start are given up in silence.
    assert "MPI_Init" not in told, told
