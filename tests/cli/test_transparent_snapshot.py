"""`backstay run --transparent` with forked snapshots (checkpoint.snapshot): what runs on, what is
killed meanwhile, and what comes back.

BACKSTAY_SEED repeats a run.
"""

import json
import os
import signal
from pathlib import Path

import pytest
from processes import wait_for
from ranks import HERE, goes_on_from_a_cut, line
from test_transparent_faults import COMPANION, failpoint, has_stopped, same_output, state_of
from test_transparent_kept import Written
from test_transparent_mpi import PAUSE_MS, RANKS, STEPS, halo
from transparent import (  # noqa: F401 (two are fixtures)
    PYTHON, newest, nothing_is_left, processes_of, program, seed, start, undisturbed)

# Writes over all of its memory, and prints what it was.
REWRITES = """
import hashlib, sys, time
memory = bytearray(hashlib.sha512(b"begin").digest() * (1 << 18))
for step in range(int(sys.argv[1])):
    for at in range(step, len(memory), 4096): memory[at] = (memory[at] + step) % 256
    print(step, hashlib.md5(memory[:: 97]).hexdigest(), flush=True)
    time.sleep(0.005)
"""
# The kernel refuses to make a child of this process's parent.
NO_FORK = """rules = [
    (0x20, 0, 0, 0), (0x15, 0, 3, 56), (0x20, 0, 0, 16), (0x45, 0, 1, 0x8000),
    (0x06, 0, 0, 0x5000b), (0x06, 0, 0, 0x7fff0000)]
"""
# The kernel ends this process where it calls userfaultfd, which only saving does.
NO_WATCH = """rules = [
    (0x20, 0, 0, 0), (0x15, 0, 1, 323), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)]
"""
LIMIT = """
import ctypes, os, struct, sys
count = len(rules)
rules = b"".join(struct.pack("HBBI", *rule) for rule in rules)
kept = ctypes.create_string_buffer(rules)
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(317, 1, 1, ctypes.byref(Program(count, ctypes.addressof(kept)))) == 0
"""
BECOME = "os.execv(sys.argv[1], sys.argv[1:])"


def forks(world, pool_mib=16):
    world.env.update(BACKSTAY_CHECKPOINT_SNAPSHOT="fork", BACKSTAY_POOL_SIZE_MIB=str(pool_mib),
                     BACKSTAY_POOL_BUFFER_MIB="1")


def events(world, kind):
    lines = (world.dir / "app" / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def ways(world):
    """How each version was saved, on each rank. A rank that has ended has nothing to copy."""
    return [one["by"] for event in events(world, "captured") for one in event["ranks"]
            if "by" in one]


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def snapshots(world):
    return [pid for pid in processes_of(world) if name_of(pid) == "backstay-snap"]


def programs(world):
    return [pid for pid in processes_of(world) if name_of(pid) != "backstay-snap"]


def goes_on(companion):
    os.kill(companion, signal.SIGCONT)
    wait_for(lambda: state_of(companion) != "T", "the companion goes on")


@pytest.mark.parametrize("how", ["fork", "auto"])
def test_killed_and_brought_back_from_a_pool_smaller_than_the_program(world, how):
    forks(world, pool_mib=4)
    world.env["BACKSTAY_CHECKPOINT_SNAPSHOT"] = how
    killed = []

    def kill_once(running):
        wait_for(lambda: running.poll() is not None or newest(world) > 0, "a version")
        for pid in programs(world):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    words = [*program(world, REWRITES), 300]
    assert "from version" in same_output(world, {}, kill_once, words)
    # Where it decides by itself, what fits into the pool is copied: before the memory is there.
    assert killed and "fork" in ways(world) and (how == "auto" or set(ways(world)) == {"fork"})
    ranks = [one for event in events(world, "captured") for one in event["ranks"]]
    assert all(one["stopped_ns"] > 0 for one in ranks)


def test_where_copies_are_wanted_there_is_no_snapshot(world):
    forks(world, pool_mib=4)
    world.env["BACKSTAY_CHECKPOINT_SNAPSHOT"] = "copy"
    same_output(world, {}, None, [*program(world, REWRITES), 100])
    assert set(ways(world)) == {"copy"}


def lines_of(path):
    return path.read_bytes().count(b"\n")


def test_the_program_runs_on_while_its_version_is_taken(world):
    forks(world)
    out = world.folder / "out"

    def look(running):
        companion = has_stopped(world, running)
        before = lines_of(out)
        wait_for(lambda: lines_of(out) > before + 3, "the program to run on")
        goes_on(companion)
        wait_for(lambda: newest(world) > 0, "the version")

    same_output(world, failpoint("rank.filled", "stop", 1), look,
                [*program(world, REWRITES), 300])


def test_a_fork_that_fails(world):
    """The program is copied as it stands, and that is said once."""
    forks(world)
    told = same_output(world, {}, None, [*program(world, REWRITES), 200],
                       before=[PYTHON, "-c", NO_FORK + LIMIT + BECOME])
    assert told.count("the process cannot be copied") == 1, told
    assert newest(world) > 1 and set(ways(world)) == {"copy"}


def test_a_program_that_limits_its_own_calls_is_not_saved(world):
    """One of its limits would end it for being saved, and no image has them."""
    told = same_output(world, {}, None, [*program(world, NO_WATCH + LIMIT + REWRITES), 100])
    assert told.count("cannot be saved now, because it limits its own system calls") == 1, told
    assert "restart" not in told, told


def test_shared_memory_is_copied_as_it_stands(world):
    forks(world)
    share = "import mmap\nshared = mmap.mmap(-1, 4 << 20)\nshared[:] = b'x' * len(shared)\n"
    told = same_output(world, {}, None, [*program(world, share + REWRITES), 100])
    assert told.count("shares memory with other processes") == 1, told
    by = ways(world)  # on a busy machine the first version comes before the program shares anything
    assert set(by[by.index("copy"):]) == {"copy"}, by


def test_a_mapping_that_may_become_writable_is_told(world):
    """A restart does not undo what is written there later: that is said once."""
    text = """import ctypes, mmap
file = open("data", "wb+")
file.truncate(1 << 16)
mapped = mmap.mmap(file.fileno(), 1 << 16)
at = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(at), ctypes.c_size_t(1 << 16), 1) == 0
"""

    def kill_once(running):
        wait_for(lambda: running.poll() is not None or newest(world) > 1, "two versions")
        for pid in programs(world):
            os.kill(pid, signal.SIGKILL)

    told = same_output(world, {}, kill_once, [*program(world, text + REWRITES), 300])
    assert told.count("restart 1") == 1 and "goes on from version" in told, told
    assert told.count("can make it writable") == 2, told  # once in each life of its companion
    assert f"{world.folder}/data" in told, told


def test_pages_are_kept_beside_snapshots(world):
    world.env["BACKSTAY_CHECKPOINT_SNAPSHOT"] = "fork"
    written = Written(world, 3)
    assert set(written.needs(4)) == {1, 2, 3}
    assert set(ways(world)) == {"fork"}
    written.kill()
    written.goes_on()


def test_a_signal_reaches_a_program_whose_version_is_taken(world):
    """The pool is stuck, and so is the companion's copy; the program hears of SIGINT all the
    same."""
    forks(world, pool_mib=4)
    text = "import signal\nsignal.signal(2, lambda *_: print('heard', flush=True))\n"
    running = start(world, [*program(world, text + REWRITES), 2000], "--job", "app", "--interval",
                    0.2, env=failpoint("rank.filled", "stop", 2))
    companion = has_stopped(world, running)
    agent = processes_of(world, "backstayd")
    for pid in agent:
        os.kill(pid, signal.SIGSTOP)
    goes_on(companion)
    os.kill(companion, signal.SIGINT)
    assert any(line == "heard\n" for line in running.stdout)
    for pid in agent:
        os.kill(pid, signal.SIGCONT)
    running.kill()
    for pid in processes_of(world, COMPANION):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
def test_ranks_of_mpi_go_on_from_forked_snapshots(world):
    launcher = HERE[-1]
    forks(world, pool_mib=8)
    goes_on_from_a_cut(world, line(launcher, RANKS, halo(launcher), STEPS, PAUSE_MS), STEPS)
    assert set(ways(world)) == {"fork"}


def runs_on_while_the_disk_is_stuck(world, words):
    """The first version never comes to the disk, and one of the next has no room in the pool."""
    world.env.update(BACKSTAY_CHECKPOINT_FULL_EVERY="1", BACKSTAY_POOL_BUFFER_MIB="1")
    out = world.folder / "out"
    with open(out, "wb") as file:
        running = start(world, words, "--job", "app", "--interval", 0.1, out=file,
                        env=failpoint("commit.1", "hang", 1))
    stuck = wait_for(lambda: running.poll() is not None or snapshots(world), "a snapshot")
    assert stuck is not True, running.communicate()
    # One that waits for the pool is there when the program has run on for long.
    before = lines_of(out)
    wait_for(lambda: lines_of(out) > before + 100, "the program to run on")
    there = wait_for(lambda: snapshots(world), "a snapshot that waits")
    before = lines_of(out)
    wait_for(lambda: lines_of(out) > before + 100, "the program to run on beside it")
    still = snapshots(world)
    running.kill()
    for name in (COMPANION, "backstay-boot", "backstayd"):
        for pid in processes_of(world, name):
            os.kill(pid, signal.SIGKILL)
    running.communicate(timeout=60)
    return set(there) & set(still)


def test_a_copy_that_waits_for_the_disk_goes_on_in_a_snapshot(world):
    world.env["BACKSTAY_POOL_SIZE_MIB"] = "40"  # two versions fit
    assert runs_on_while_the_disk_is_stuck(world, [*program(world, REWRITES), 3000])


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
def test_ranks_of_mpi_run_on_while_the_disk_is_stuck(world):
    forks(world, pool_mib=8)
    words = line(HERE[0], RANKS, halo(HERE[0]), 4000, PAUSE_MS)
    assert runs_on_while_the_disk_is_stuck(world, words)
