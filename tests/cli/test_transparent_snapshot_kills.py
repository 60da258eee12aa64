"""What is killed while a version is taken by a forked snapshot: the snapshot, its program, its
companion.

BACKSTAY_SEED repeats a run.
"""

import os
import signal

import pytest
from processes import wait_for
from ranks import HERE, line
from test_transparent_faults import COMPANION, failpoint, has_stopped, same_output, state_of
from test_transparent_snapshot import REWRITES, forks, goes_on, programs, snapshots, ways
from test_transparent_mpi import PAUSE_MS, RANKS, STEPS, halo
from transparent import (  # noqa: F401 (two are fixtures)
    newest, nothing_is_left, processes_of, program, seed, start, undisturbed)


def kill_snapshots(world, killed):
    """What same_output() does at a stop; `killed` gets their numbers."""
    def kill(running):
        companion = has_stopped(world, running)
        for pid in snapshots(world):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        goes_on(companion)
        wait_for(lambda: running.poll() is not None or newest(world) > 0, "a version after it")

    return kill


@pytest.mark.parametrize("point", ["image.forked", "image.resume", "rank.begin", "rank.filled"])
def test_kill_of_the_snapshot_at(world, point):
    """It costs a version, and never the program."""
    forks(world, pool_mib=4)  # no message to the agent has all of the image
    killed = []
    told = same_output(world, failpoint(point, "stop", 1), kill_snapshots(world, killed),
                       [*program(world, REWRITES), 300], interval=1)  # its memory is there
    assert len(killed) == 1 and "restart 1" not in told, told
    assert "agent" not in told, told  # it lives, and has lost nothing
    if point != "image.forked":
        assert "snapshot of the program was killed" in told, told


def test_the_version_behind_a_killed_snapshot_is_copied(world):
    """A machine that is short of memory would kill the next one, too."""
    forks(world, pool_mib=4)
    world.env["BACKSTAY_CHECKPOINT_SNAPSHOT"] = "auto"
    killed = []
    before = 7  # versions; the first may come before the memory is there, and are copied
    told = same_output(world, failpoint("image.resume", "stop", before + 1),
                       kill_snapshots(world, killed),
                       [*program(world, REWRITES), 300])
    assert len(killed) == 1 and ways(world)[before - 1:before + 1] == ["fork", "copy"], told


def test_kill_of_the_program_while_its_snapshot_lives(world):
    """The version is completed, and the program goes on from it."""
    forks(world)
    seen = []

    def kill(running):
        companion = has_stopped(world, running)
        for pid in programs(world):
            os.kill(pid, signal.SIGKILL)
        assert len(snapshots(world)) == 1
        seen.append(newest(world))
        goes_on(companion)
        wait_for(lambda: running.poll() is not None or newest(world) > seen[0], "that version")

    # A restart reads the variable anew: the second life stops at its first buffer too.
    words = [*program(world, REWRITES), 300]
    world.env["BACKSTAY_CHECKPOINT_FULL_EVERY"] = "1"
    expected, out = undisturbed(words, world.folder), world.folder / "out"
    with open(out, "wb") as file:
        running = start(world, words, "--job", "app", "--interval", 0.2, "--retries", 0, out=file,
                        env=failpoint("rank.filled", "stop", 1))
        kill(running)
        running.communicate(timeout=60)
        assert seen == [0]
        wait_for(lambda: newest(world) == 1, "that version on the disk")
        last = start(world, words, "--job", "app", "--interval", 0.2, out=file)
        _, told = last.communicate(timeout=100)
    assert (last.returncode, out.read_bytes() == expected) == (0, True), told


POINTS = ["image.forked", "rank.begin", "rank.end"]


@pytest.mark.parametrize("point", POINTS)
def test_kill_of_the_companion_at(world, point):
    forks(world)
    told = same_output(world, failpoint(point), None, [*program(world, REWRITES), 300])
    assert "from version" in told


@pytest.mark.parametrize("point", ["image.cut", *POINTS])
def test_kill_of_the_program_at(world, point):
    forks(world)
    killed = []

    def kill_each(running):
        while (companion := has_stopped(world, running)) is not None:
            for pid in programs(world):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            goes_on(companion)

    told = same_output(world, failpoint(point, "stop"), kill_each,
                       [*program(world, REWRITES), 300])
    assert killed and "from version" in told, told
    copied = "because the copy of the process was killed"  # by this test, before the process
    assert told.count("stood still") == told.count(copied), told


def test_a_snapshot_ends_with_its_companion(world):
    forks(world)
    words = [*program(world, REWRITES), 300]
    running = start(world, words, "--job", "app", "--interval", 0.2, "--retries", 0,
                    env=failpoint("rank.filled", "stop", 1))
    companion = has_stopped(world, running)
    assert len(snapshots(world)) == 1
    os.kill(companion, signal.SIGKILL)
    running.communicate(timeout=60)
    wait_for(lambda: not processes_of(world), "the snapshot and the program to end")


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
def test_kill_of_the_snapshot_of_one_rank(world):
    """It costs all ranks a version; they run on, and the next one is taken."""
    forks(world, pool_mib=4)
    out = world.folder / "out"
    with open(out, "wb") as file:
        running = start(world, line(HERE[0], RANKS, halo(HERE[0]), STEPS, PAUSE_MS), "--job", "app",
                        "--interval", 0.1, "--retries", 0, out=file,
                        env=failpoint("rank.begin", "stop", 1))

    def stopped():
        return [pid for pid in processes_of(world, COMPANION) if state_of(pid) == "T"]

    wait_for(lambda: running.poll() is not None or len(stopped()) == RANKS, "all at their point")
    there = snapshots(world)
    assert len(there) == RANKS
    os.kill(there[0], signal.SIGKILL)
    for companion in stopped():
        goes_on(companion)
    wait_for(lambda: running.poll() is not None or newest(world) > 0, "a version after it")
    _, told = running.communicate(timeout=100)
    assert running.returncode == 0 and newest(world) > 0, told
    assert "snapshot of the program was killed" in told, told
    assert len(out.read_bytes().splitlines()) == STEPS, told
