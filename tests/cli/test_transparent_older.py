"""Restarts of unmodified programs from an older version, where the newest cannot be brought back.

Each version is requested, and each step of a program waits for a file; nothing depends on times.
"""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from processes import wait_for
from ranks import HERE, line
from transparent import (  # noqa: F401 (two are fixtures)
    environment, kill_job, nothing_is_left, processes_of, program, seed, start, versions)

# Has a file open, and another one mapped, from its second step on.
STEPS = """
import mmap, os, sys, time
rank = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
def step(name):
    open(f"has.{rank}", "a").write(name + "\\n")
    while not os.path.exists(name):
        time.sleep(0.01)
step("two")
scratch = open(f"scratch.{rank}", "w+b")
scratch.write(b"x" * 100)
scratch.flush()
mapped = open(f"mapped.{rank}", "w+b")
mapped.write(b"y" * 4096)
mapped.flush()
seen = mmap.mmap(mapped.fileno(), 4096)
mapped.close()
step("three")
open(f"has.{rank}", "a").write("end\\n")
"""


def steps_of(world, rank=0):
    path = world.folder / f"has.{rank}"
    return path.read_text().split() if path.exists() else []


class Saved:
    """A program with version 1, and version 2 where it has more files; then all of it is killed."""

    def __init__(self, world, words, ranks=1):
        self.world, self.words = world, words
        self.settings = {"BACKSTAY_CHECKPOINT_POLICY": "request",
                         "BACKSTAY_AGENT_IDLE_EXIT_S": "60"}
        world.env.update(self.settings)
        running = start(world, words, "--job", "app", "--retries", 0)
        for version, name in ((1, "two"), (2, "three")):
            wait_for(lambda name=name: running.poll() is not None or
                     all(name in steps_of(world, rank) for rank in range(ranks)), name)
            done = world.run("checkpoint", "app", "--wait")
            assert done.returncode == 0, done.stderr
            assert [one["version"] for one in versions(world, "app")][-1] == version
            (world.folder / "two").touch()
        kill_job(world, running)
        (world.folder / "three").touch()

    def goes_on(self, *options, env=None):
        self.world.run("agent", "stop")  # what comes is on the disk
        for path in self.world.folder.glob("has.*"):
            path.unlink()
        return self.world.run("run", "--transparent", "--job", "app", *options, "--",
                              *self.words, env=env)

    def none_is_set_aside(self):
        found = self.world.json("verify", "app")["versions"]
        return [one["good"] for one in found] == [True, True]


def test_a_version_whose_file_is_gone_is_left_out_and_named(world):
    saved = Saved(world, program(world, STEPS))
    (world.folder / "scratch.0").unlink()
    done = saved.goes_on()
    assert done.returncode == 0, done.stderr
    assert "version 2 skipped: " in done.stderr and "scratch.0 is missing" in done.stderr
    assert "goes on from version 1" in done.stderr, done.stderr
    assert steps_of(world) == ["three", "end"]  # what comes behind version 1
    assert saved.none_is_set_aside()


def other_file(scratch):
    other = scratch.with_name("other")
    other.write_bytes(b"z" * 500)
    return other


REPLACED = {
    "by another file": lambda scratch: os.replace(other_file(scratch), scratch),
    "by a link": lambda scratch: (scratch.unlink(), scratch.symlink_to(other_file(scratch))),
    "by a folder": lambda scratch: (scratch.unlink(), scratch.mkdir()),
}


@pytest.mark.parametrize("how", REPLACED)
def test_a_version_whose_file_was_replaced_is_left_out_and_the_other_file_stays(world, how):
    """It is longer, and may have the same inode."""
    saved = Saved(world, program(world, STEPS))
    scratch = world.folder / "scratch.0"
    REPLACED[how](scratch)
    there = scratch.read_bytes() if scratch.is_file() else None
    done = saved.goes_on("--from", 2)
    why = "is no file any more" if there is None else "is another file than the one"
    assert done.returncode != 0 and f"scratch.0 {why}" in done.stderr, done.stderr
    assert there is None or scratch.read_bytes() == there


# Python keeps a descriptor of what it maps.
ONLY_MAPS = """mapped.close()
for one in os.listdir("/proc/self/fd"):
    if os.path.realpath(f"/proc/self/fd/{one}").endswith(f"mapped.{rank}"):
        os.close(int(one))
"""


def test_a_version_whose_mapped_file_was_replaced_is_left_out_and_the_other_file_stays(world):
    saved = Saved(world, program(world, STEPS.replace("mapped.close()\n", ONLY_MAPS)))
    mapped = world.folder / "mapped.0"
    other = other_file(mapped)
    other.write_bytes(b"z" * 5000)
    os.replace(other, mapped)
    done = saved.goes_on("--from", 2)
    assert done.returncode != 0 and (
        "mapped.0 is another file than the one that the program had mapped" in done.stderr), done
    assert mapped.read_bytes() == b"z" * 5000


def test_a_pipe_in_the_place_of_a_file_does_not_keep_a_restart_waiting(world):
    text = STEPS.replace('"w+b")\nscratch.write(b"x" * 100)', '"wb")')
    assert text != STEPS
    saved = Saved(world, program(world, text))
    scratch = world.folder / "scratch.0"
    scratch.unlink()
    os.mkfifo(scratch)
    try:
        done = saved.goes_on("--from", 2)
    finally:
        os.close(os.open(scratch, os.O_RDWR))  # lets a process go that waits there
    assert done.returncode != 0 and "scratch.0 is no file any more" in done.stderr, done.stderr


def test_a_copy_in_the_place_of_a_lost_file_is_that_file(world):
    saved = Saved(world, program(world, STEPS))
    scratch = world.folder / "scratch.0"
    shutil.copy2(scratch, world.folder / "copy")
    os.replace(world.folder / "copy", scratch)
    done = saved.goes_on()
    assert done.returncode == 0 and "goes on from version 2" in done.stderr, done.stderr
    assert scratch.read_bytes() == b"x" * 100


def flip(path):
    """At several places: there is room between the objects of two ranks."""
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 2, len(content), 4096):
        content[at] ^= 1
    path.write_bytes(content)


def is_refused(done):
    """By the ranks, in the first attempt; all ways on are named."""
    assert done.returncode != 0, done.stderr
    assert "not tried again" in done.stderr and "restart 1" not in done.stderr, done.stderr
    assert "--fresh" in done.stderr, done.stderr


@pytest.mark.parametrize("what", ["manifest", "segment"])
@pytest.mark.parametrize("ranks", [1, 2] if HERE else [1])
def test_where_all_versions_are_damaged_one_attempt_names_them_and_the_ways_on(world, ranks, what):
    words = program(world, STEPS)
    saved = Saved(world, line(HERE[0], ranks, *words) if ranks > 1 else words, ranks)
    world.run("agent", "stop")
    for path in (world.dir / "app").glob(f"v*/*.{what}"):
        flip(path)
    for _ in range(2):  # the second time it is known
        done = saved.goes_on()
        is_refused(done)
        for version in (1, 2):  # skipped as it is read, or known to be damaged
            assert re.search(f"version {version}(:| skipped:) ", done.stderr), done.stderr
        assert "`backstay verify app`" in done.stderr and steps_of(world) == [], done.stderr
    done = saved.goes_on("--fresh")
    assert done.returncode == 0 and "restart 1" not in done.stderr, done.stderr
    assert steps_of(world)[-1] == "end"


def test_an_input_that_was_changed_is_named(world):
    """By its descriptor, or by a shared mapping; the program goes on all the same."""
    mapped = "one = mmap.mmap(os.open('data.2', os.O_RDONLY), 4, access=mmap.ACCESS_READ)\n"
    words = program(world, f"import mmap, os\nkept = [open('same'), open('data.1')]\n{mapped}" +
                    STEPS)
    for name in ("same", "data.1", "data.2"):
        (world.folder / name).write_text("data")
    saved = Saved(world, words)
    assert "was changed after" not in saved.goes_on().stderr
    for number, told in ((1, "data.1, which"), (2, "data.1 (and 1 more), which")):
        (world.folder / f"data.{number}").write_text("edit")
        done = saved.goes_on()
        assert done.returncode == 0 and steps_of(world) == ["end"], done.stderr
        assert done.stderr.count("was changed after") == 1 and told in done.stderr, done.stderr


def test_where_no_version_can_be_brought_back_each_is_named_and_none_is_lost(world):
    words = program(world, "data = open('data')\n" + STEPS)
    (world.folder / "data").write_text("data")
    saved = Saved(world, words)
    (world.folder / "data").rename(world.folder / "elsewhere")
    done = saved.goes_on()
    is_refused(done)
    for version in (1, 2):
        assert f"version {version} skipped: " in done.stderr, done.stderr
    assert saved.none_is_set_aside()
    (world.folder / "elsewhere").rename(world.folder / "data")
    done = saved.goes_on()
    assert done.returncode == 0 and "skipped" not in done.stderr, done.stderr
    assert steps_of(world) == ["end"]


def test_a_refusal_that_concerns_each_version_ends_the_restart(world):
    """As for a processor that lacks something: the program is another build."""
    python = world.folder / "python"
    shutil.copy2(os.path.realpath("/usr/bin/python3"), python)
    saved = Saved(world, [python, *program(world, STEPS)[1:]])
    shutil.copy2("/bin/sleep", python)
    done = saved.goes_on()
    is_refused(done)
    assert "python is another build" in done.stderr and "skipped" not in done.stderr, done.stderr
    assert saved.none_is_set_aside()


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def goes_on_after(saved, point, what, ranks=1):
    """What it tells where `what` happens while all companions stand at this point."""
    world = saved.world
    world.run("agent", "stop")
    for path in world.folder.glob("has.*"):
        path.unlink()

    def stopped():
        return [pid for pid in processes_of(world, "backstay-companion") if state_of(pid) == "T"]

    running = start(world, saved.words, "--job", "app", "--retries", 0,
                    env={"BACKSTAY_FAILPOINT": f"{point}=stop@1"})
    wait_for(lambda: running.poll() is not None or len(stopped()) == ranks, "companions there")
    what()
    for pid in stopped():
        os.kill(pid, signal.SIGCONT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 0, told
    return told


def test_an_image_that_breaks_its_process_is_left_out(world):
    """A mapped file that has become shorter between the look at it and the copy."""
    saved = Saved(world, program(world, STEPS))
    told = goes_on_after(saved, "image.table",
                         lambda: os.truncate(world.folder / "mapped.0", 0))
    assert "version 2 skipped: " in told and "broke down" in told, told
    assert "goes on from version 1" in told and saved.none_is_set_aside(), told


def wait_until_asked(companion):
    """Until its process waits for its next request (recvmsg); that process."""
    pid, = Path(f"/proc/{companion}/task/{companion}/children").read_text().split()
    call = Path(f"/proc/{pid}/syscall")
    wait_for(lambda: call.read_text().startswith("47 "), "the process waits for a request")
    return pid


def test_a_process_that_breaks_down_before_it_goes_on_is_left_out(world):
    """All of its image is there."""
    saved = Saved(world, program(world, STEPS))

    def break_it():
        """Its next instruction, behind the system call in which it waits, is none."""
        companion, = processes_of(world, "backstay-companion")
        pid = wait_until_asked(companion)
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(int(Path(f"/proc/{pid}/syscall").read_text().split()[-1], 16))
            memory.write(b"\x0f\x0b")

    told = goes_on_after(saved, "image.ready", break_it)
    assert "version 2 skipped: " in told and "broke down, with exit code 132" in told, told
    assert "goes on from version 1" in told and saved.none_is_set_aside(), told
    assert steps_of(world) == ["three", "end"], told


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
def test_no_rank_goes_on_before_all_can(world):
    """Rank 0 has all that it needs, and has cut its file back."""
    saved = Saved(world, line(HERE[0], 2, *program(world, STEPS)), ranks=2)
    longer = world.folder / "scratch.0"
    longer.write_bytes(b"x" * 101)

    def let_rank_0_come_first():
        first = next(pid for pid in processes_of(world, "backstay-companion")
                     if re.search(rb"(PMI|OMPI_COMM_WORLD)_RANK=0\0", environment(pid)))
        os.kill(first, signal.SIGCONT)
        wait_for(lambda: longer.stat().st_size == 100, "its file is cut back")
        wait_until_asked(first)
        (world.folder / "scratch.1").unlink()

    told = goes_on_after(saved, "image.ready", let_rank_0_come_first, ranks=2)
    assert told.count("version 2 skipped: ") == 1 and "scratch.1" in told, told
    assert "goes on from version 1" in told and saved.none_is_set_aside(), told
    assert [steps_of(world, rank) for rank in (0, 1)] == [["three", "end"]] * 2, told


def test_a_damaged_version_is_left_out_and_named(world):
    saved = Saved(world, program(world, STEPS))
    world.run("agent", "stop")
    flip(next((world.dir / "app").glob("v*2/*segment*")))
    done = saved.goes_on()
    assert done.returncode == 0 and "version 2 skipped: " in done.stderr, done.stderr
    assert "does not match its checksum" in done.stderr, done.stderr
    assert "goes on from version 1" in done.stderr and steps_of(world) == ["three", "end"]
    again = world.run("verify", "app", "--json").stdout
    assert '"good": false' in again or '"good":false' in again, again


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
def test_all_ranks_go_back_where_one_cannot(world):
    saved = Saved(world, line(HERE[0], 2, *program(world, STEPS)), ranks=2)
    (world.folder / "scratch.1").unlink()
    done = saved.goes_on()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("version 2 skipped: ") == 1 and "scratch.1" in done.stderr
    assert [steps_of(world, rank) for rank in (0, 1)] == [["three", "end"]] * 2, done.stderr
    assert saved.none_is_set_aside()


# --- --from --------------------------------------------------------------------------------------


def test_from_takes_an_older_version_and_newer_ones_stay(world):
    saved = Saved(world, program(world, STEPS))
    done = saved.goes_on("--from", 1)
    assert done.returncode == 0 and "goes on from version 1; newer ones" in done.stderr, done.stderr
    assert steps_of(world) == ["three", "end"]
    assert saved.none_is_set_aside()
    done = saved.goes_on()
    assert done.returncode == 0 and steps_of(world) == ["end"], done.stderr  # from version 2


def kill_the_program(world):
    for pid in processes_of(world):
        os.kill(pid, signal.SIGKILL)


def test_a_retry_does_not_take_a_version_that_was_passed_over(world):
    saved = Saved(world, program(world, STEPS))
    (world.folder / "has.0").unlink()
    (world.folder / "three").unlink()
    running = start(world, saved.words, "--job", "app", "--from", 1)
    wait_for(lambda: running.poll() is not None or steps_of(world) == ["three"], "its first life")
    kill_the_program(world)
    wait_for(lambda: running.poll() is not None or steps_of(world) == ["three"] * 2, "its second")
    assert world.run("checkpoint", "app", "--wait").returncode == 0
    kill_the_program(world)
    (world.folder / "three").touch()
    _, told = running.communicate(timeout=60)
    assert running.returncode == 0, told
    assert "restart 1 of 3 from version 1, as --from asks" in told, told
    assert "restart 2 of 3 from version 3, captured" in told, told
    assert steps_of(world) == ["three", "three", "end"], told


def test_where_the_version_of_from_is_damaged_no_other_is_taken(world):
    saved = Saved(world, program(world, STEPS))
    world.run("agent", "stop")
    flip(next((world.dir / "app").glob("v*1/*segment*")))
    for _ in range(2):  # the second time it is known
        done = saved.goes_on("--from", 1)
        is_refused(done)
        assert "version 1 of job app is damaged" in done.stderr, done.stderr
        assert "checksum" in done.stderr and "`backstay ls` lists them" in done.stderr, done.stderr
        assert steps_of(world) == []


@pytest.mark.parametrize("options, why", [
    (["--transparent", "--from", "9"], "version 9 of job app does not exist"),
    (["--from", "1"], "--from is for programs under --transparent"),
    (["--transparent", "--from", "1", "--requeue"], "--from and --requeue"),
    (["--transparent", "--from", "1", "--fresh"], "--fresh"),
    (["--transparent", "--from", "-1"], "--from"),
])
def test_from_is_refused_by_name(world, options, why):
    done = world.run("run", *options, "--job", "app", "--", "/bin/echo", "begun")
    assert done.returncode != 0 and why in done.stderr and done.stdout == "", done
    assert "restart 1" not in done.stderr, done.stderr
