"""Versions of an unmodified program that keep what did not change (docs/format/image.md)."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from conftest import PROGRAM, ROOT
from processes import wait_for
from transparent import (  # noqa: F401 (two are fixtures)
    PYTHON, kill_job, newest, nothing_is_left, processes_of, program, seed, start, status_of, stop,
    undisturbed, versions)

MEMORY = 48 << 20
STEP = f"""
    block = draw.randrange({MEMORY} >> 21) << 21
    data[block : block + (2 << 20)] = draw.randbytes(2 << 20)
    for _ in range(100):
        page = draw.randrange({MEMORY} >> 12) << 12
        data[page : page + 4096] = draw.randbytes(4096)
"""
# Writes to some pages when it is told to, and prints a checksum of all its memory.
WRITES = f"""
import os, random, sys, time, zlib
draw = random.Random(7)
data = bytearray(draw.randbytes({MEMORY}))
print("begun", zlib.crc32(data), flush=True)
for step in range(1, 7):
    while not os.path.exists("step%d" % step):
        time.sleep(0.01)
{STEP}
    moved = bytearray(data[: 8 << 20])  # memory of its own, which comes and goes
    print(step, zlib.crc32(data), zlib.crc32(moved), flush=True)
    del moved
for at in range(0, len(data), 1 << 20):
    print(at, zlib.crc32(data[at : at + (1 << 20)]), flush=True)
"""


# Does the same steps, and looks for that memory in a version.
READS = f"""
import random, sys
import backstay.format
draw = random.Random(7)
data = bytearray(draw.randbytes({MEMORY}))
for step in range(2):
{STEP}
image = backstay.format.open(sys.argv[1]).image(0)
large = [one for one in image.areas if int(one["end"]) - int(one["start"]) >= {MEMORY}]
found = [image.memory(int(one["start"]), int(one["end"]) - int(one["start"])) for one in large]
assert any(data in memory for memory in found if memory)
"""


def lines_of(out):
    return out.read_bytes().splitlines() if out.exists() else []


class Written:
    """A program that has taken `steps` of its steps, with a version after each of them."""

    def __init__(self, world, steps, every=8):
        self.world, self.out = world, world.folder / "out"
        self.words = program(world, WRITES)
        for step in range(1, 7):
            (world.folder / f"step{step}").touch()
        self.expected = undisturbed(self.words, world.folder)
        for step in range(1, 7):
            (world.folder / f"step{step}").unlink()
        world.env.update(BACKSTAY_CHECKPOINT_POLICY="request", BACKSTAY_POOL_SIZE_MIB="128",
                         BACKSTAY_POOL_BUFFER_MIB="1",
                         BACKSTAY_CHECKPOINT_FULL_EVERY=str(every), BACKSTAY_STORAGE_KEEP="2")
        self.file = open(self.out, "ab")
        self.running = start(world, self.words, "--job", "app", "--retries", 0, out=self.file)
        self.steps = 0
        self.save()
        for _ in range(steps):
            self.step()
            self.save()

    def save(self, *level):
        wait_for(lambda: len(lines_of(self.out)) > self.steps, "its output")
        done = self.world.run("checkpoint", "app", "--wait", *level)
        assert done.returncode == 0, done.stderr

    def step(self):
        self.steps += 1
        (self.world.folder / f"step{self.steps}").touch()

    def kill(self, agent=True):
        """The program, its companion and `backstay run`; the pool goes with the agent."""
        kill_job(self.world, self.running)
        self.file.close()
        if agent:
            self.world.run("agent", "stop")

    def again(self):
        self.file = open(self.out, "ab")
        self.running = start(self.world, self.words, "--job", "app", "--retries", 0, out=self.file)
        wait_for(lambda: self.running.poll() is not None or
                 status_of(self.world, "app").get("processes"), "the program is there again")

    def goes_on(self):
        for step in range(1, 7):
            (self.world.folder / f"step{step}").touch()
        with open(self.out, "ab") as file:
            done = subprocess.run(
                [PROGRAM, "run", "--transparent", "--job", "app", "--retries", "0", "--",
                 *map(str, self.words)],
                env=self.world.env, cwd=self.world.folder, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.PIPE, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert self.out.read_bytes() == self.expected, done.stderr

    def needs(self, version):
        return self.world.json("show", "app", version)["needs"]

    def segment(self, version):
        return next((self.world.dir / "app").glob(f"v*{version:016d}/*segment*"))


def damage_each_chunk(segment):
    with open(segment, "r+b") as file:
        for at in range(4096 + 64, segment.stat().st_size, 1 << 20):
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 1]))


def test_a_chain_of_three_comes_back_to_the_last_bit(world):
    written = Written(world, 3)
    assert [written.needs(v) for v in (1, 2)] == [[], [1]]
    assert set(written.needs(4)) == {1, 2, 3}
    sizes = [written.segment(v).stat().st_size for v in (1, 2, 3, 4)]
    assert all(size < sizes[0] / 2 for size in sizes[1:]), sizes
    assert all(one["good"] for one in world.json("verify", "app")["versions"])
    shown = world.run("show", "app", "4").stdout
    assert "needs what lies in versions 1, 2, 3" in shown
    written.kill()
    written.goes_on()


def test_a_full_one_ends_the_chain_and_retention_removes_what_was_before(world):
    written = Written(world, 2, every=3)
    assert written.needs(3)
    for _ in range(2):
        written.step()
        written.save()
    assert written.needs(4) == [] and written.needs(5) == [4]
    wait_for(lambda: [one["version"] for one in versions(world, "app")] == [4, 5],
             "the chain before to be removed")
    written.kill()
    written.goes_on()


def test_a_base_is_not_removed_while_it_is_needed(world):
    written = Written(world, 2)
    refused = world.run("rm", "app", "1")
    assert refused.returncode != 0 and "version 3 needs it" in refused.stdout, refused
    assert [one["version"] for one in versions(world, "app")] == [1, 2, 3]
    written.kill()
    written.goes_on()


def test_a_damaged_page_in_a_base_is_damage_of_what_needs_it(world):
    """Version 3 needs what 2 has written, 1 does not."""
    written = Written(world, 2)
    assert 2 in written.needs(3)
    written.kill()
    damage_each_chunk(written.segment(2))
    found = json.loads(world.run("verify", "app", "--json").stdout)["versions"]
    assert [one["good"] for one in found] == [True, False, False], found
    written.goes_on()


def test_a_chain_that_is_copied_comes_back_from_the_copy_alone(world):
    written = Written(world, 2)
    written.kill()
    there = world.folder / "there"
    there.mkdir()
    done = world.json("copy", "app", "--to", there)
    assert done["version"] == 3 and done["needed"] == [1, 2]
    found = world.json("verify", "app", "--dir", there)["versions"]
    assert [(one["version"], one["good"]) for one in found] == [(1, True), (2, True), (3, True)]
    shutil.rmtree(world.dir / "app")
    assert world.json("copy", "app", "--from", there)["needed"] == [1, 2]
    written.goes_on()


def test_a_chain_that_is_durable_comes_back_from_shared_storage_alone(world):
    """Every third version is copied, with what it needs; the first has its turn by itself."""
    shared = world.folder / "shared"
    shared.mkdir()
    world.env.update(BACKSTAY_DURABLE_DIR=str(shared), BACKSTAY_DURABLE_EVERY="3")
    written = Written(world, 2)
    written.step()
    written.save("--level", "durable")
    assert world.json("show", "app", 4, "--dir", shared)["needs"] == [1, 2, 3]
    found = world.json("verify", "app", "--dir", shared)["versions"]
    assert [one["version"] for one in found] == [1, 2, 3, 4]
    assert all(one["good"] for one in found), found
    written.kill()
    shutil.rmtree(world.dir / "app")
    written.goes_on()


def test_shared_storage_keeps_what_its_versions_need_and_no_more(world):
    shared = world.folder / "shared"
    shared.mkdir()
    world.env.update(BACKSTAY_DURABLE_DIR=str(shared), BACKSTAY_DURABLE_KEEP="1")
    written = Written(world, 2, every=3)
    written.save("--level", "durable")  # the full one
    written.step()
    written.save("--level", "durable")
    wait_for(lambda: [one["version"] for one in
                      world.json("ls", "app", "--dir", shared)["versions"]] == [4, 5],
             "the chain before to be removed there")
    written.kill()
    shutil.rmtree(world.dir / "app")
    written.goes_on()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_killed_agent_ends_the_chain(world, stopped):
    written = Written(world, 1)
    assert written.needs(2) == [1]
    for pid in processes_of(world, "backstayd"):
        os.kill(pid, signal.SIGKILL)
    if stopped:  # right after it: what was told as local is all there is
        written.kill()
        written.goes_on()
        return
    written.step()
    wait_for(lambda: len(lines_of(written.out)) > 2, "its output")
    written.running.send_signal(signal.SIGUSR1)
    wait_for(lambda: newest(world) >= 3, "a version")
    assert written.needs(newest(world)) == []
    written.kill()
    written.goes_on()


@pytest.mark.parametrize("steps, agent", [(2, True), (0, False)])
def test_the_first_version_after_a_restart_keeps_what_did_not_change(world, steps, agent):
    """From the disk and from memory. The next one keeps parts of it, and all come back."""
    written = Written(world, steps)
    written.kill(agent)
    written.again()
    before = steps + 1
    for version in (before + 1, before + 2):
        written.step()
        written.save()
        assert max(written.needs(version)) == version - 1
        size = written.segment(version).stat().st_size
        assert size < written.segment(1).stat().st_size / 2, version
    refused = world.run("rm", "app", before)
    assert refused.returncode != 0 and "needs it" in refused.stdout, refused
    assert all(one["good"] for one in world.json("verify", "app")["versions"])
    written.kill()
    written.goes_on()


def test_a_chain_ends_where_it_would_without_restarts(world):
    written = Written(world, 1, every=3)
    needs = []
    for version in (3, 4, 5):
        written.kill()
        written.again()
        written.save()
        needs.append(written.needs(version))
    assert needs[1:] == [[], [4]] and 2 in needs[0], needs
    written.kill()
    written.goes_on()


def test_after_a_restart_from_shared_storage_alone_the_first_version_is_full(world):
    shared = world.folder / "shared"
    shared.mkdir()
    world.env.update(BACKSTAY_DURABLE_DIR=str(shared))
    written = Written(world, 1)
    written.step()
    written.save("--level", "durable")
    written.kill()
    shutil.rmtree(world.dir / "app")
    written.again()
    written.step()
    written.save()
    assert written.needs(newest(world)) == []
    written.kill()
    written.goes_on()


def test_every_version_is_full_where_it_is_wanted(world):
    written = Written(world, 2, every=1)
    assert [written.needs(v) for v in (2, 3)] == [[], []]
    written.kill()


def test_the_last_version_is_whole_where_what_it_would_need_is_gone(world):
    """Somebody has removed the folder by hand; the program is to be saved, and to end."""
    written = Written(world, 2)
    folder, = (world.dir / "app").glob("v*1")
    shutil.rmtree(folder)
    written.step()
    wait_for(lambda: len(lines_of(written.out)) > 3, "its output")
    stop(written.running)
    written.file.close()
    assert written.needs(newest(world)) == []
    written.goes_on()


def test_numpy_alone_reads_a_chain(world):
    python = os.environ.get("BACKSTAY_NUMPY_PYTHON", PYTHON)
    written = Written(world, 2)
    written.kill()
    folder, = (world.dir / "app").glob("v*3")
    done = subprocess.run([python, "-c", READS, str(folder)], capture_output=True, text=True,
                          env={**world.env, "PYTHONPATH": str(ROOT / "python")}, timeout=60)
    assert done.returncode == 0, done.stderr
