"""Forked snapshots: the image of a program that runs on, and writes over all of its memory, is that
of the cut; what the program, the snapshot and their companion see of each other.

The test plays the companion (companion.py).
Usage: snapshot_test.py BOOT FOLDER_OF_PROGRAMS
"""

import contextlib
import os
import select
import signal
import sys
import tempfile
from pathlib import Path

from booted import END_S
from companion import (
    CHUNK, CUT, RESUME, SNAPSHOT, Companion, Lines, No, Snapshot, bring_back, new_pool, read_image)

TORN = Path(sys.argv[2]).resolve() / "image_torn"
NOW, AGAIN = 1, 3  # Refused
MEMORY = 24 << 20

# Prints a checksum of its memory, or runs the line that it reads.
PROGRAM = f"""
import ctypes, mmap, os, random, sys, zlib
libc = ctypes.CDLL(None, use_errno=True)
data = mmap.mmap(-1, {MEMORY}, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
data[:] = random.Random(1).randbytes({MEMORY})
shared = []
def rewrite():
    for one in [data, *shared]:
        one[:] = bytes(255 - byte for byte in one[:4096]) * (len(one) // 4096)
def share(size):
    shared.append(mmap.mmap(-1, size))
    shared[-1][:] = random.Random(2).randbytes(size)
def advise(what):
    own = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    own[:] = random.Random(3).randbytes(len(own))
    own.madvise(what)
    shared.append(own)
def no_parents_children():
    class Program(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
    import struct
    rules = b"".join(struct.pack("HBBI", *rule) for rule in [
        (0x20, 0, 0, 0), (0x15, 0, 3, 56), (0x20, 0, 0, 16), (0x45, 0, 1, 0x8000),
        (0x06, 0, 0, 0x5000b), (0x06, 0, 0, 0x7fff0000)])
    kept = ctypes.create_string_buffer(rules)
    program = Program(6, ctypes.addressof(kept))
    libc.prctl(38, 1, 0, 0, 0)
    assert libc.syscall(317, 1, 1, ctypes.byref(program)) == 0, ctypes.get_errno()
def waits():
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return "no child"
while line := sys.stdin.readline():
    said = eval(line)
    total = zlib.crc32(data)
    for one in shared:
        total = zlib.crc32(one, total)
    print(total, said, flush=True)
"""


class Program:
    """A life of it, with a pool."""

    def __init__(self, stderr=None):
        self.pool, self.memory = new_pool()
        self.lines = Lines()
        self.scratch = tempfile.TemporaryDirectory()
        path = Path(self.scratch.name) / "app.py"
        path.write_text(PROGRAM)
        self.life = Companion(self.pool, ["--", "/usr/bin/python3", str(path)],
                              self.lines.to_read, self.lines.out_write, stderr)
        self.say("None")

    def say(self, word):
        return self.lines.say(word)

    def cut(self, **words):
        return self.life.ask(CUT, bytes_=CHUNK, **words)

    def image(self, life, begun):
        return read_image(life, begun, self.memory)[0]

    def goes_on_from(self, image):
        self.life.kill()
        self.life = bring_back(self.pool, self.memory, image, self.lines.to_read,
                               self.lines.out_write)


@contextlib.contextmanager
def started(stderr=None):
    program = Program(stderr)
    try:
        yield program
    finally:
        program.life.kill()


def test_the_image_is_that_of_the_cut():
    with started() as program:
        before = program.say("None")
        begun = program.cut()
        copied = program.image(program.life, begun)
        program.life.ask(RESUME)
        assert program.say("None") == before

        begun = program.cut()
        snapshot = Snapshot(program.life)
        standing = program.image(program.life, begun)
        program.life.ask(RESUME)
        assert program.say("rewrite()") != before
        assert program.image(snapshot, begun) == standing
        assert len(standing) - len(copied) < 4 << 20
        assert snapshot.end() == 0
        program.goes_on_from(standing)
        assert program.say("None") == before


def test_pages_are_kept_beside_a_snapshot():
    with started() as program:
        before = program.say("None")
        begun = program.cut(watches=1)
        snapshot = Snapshot(program.life)
        program.life.ask(RESUME)
        changed = program.say("data.__setitem__(slice(0, 99), bytes(99))")
        first = program.image(snapshot, begun)
        snapshot.end()
        begun = program.cut(watches=1, keeps=1)
        if begun["kept_bytes"] == 0:
            program.life.ask(RESUME)
            return print("left out: this kernel does not watch writes")
        snapshot = Snapshot(program.life)
        program.life.ask(RESUME)
        program.say("rewrite()")
        second, filled = read_image(snapshot, begun, program.memory, first)
        snapshot.end()
        assert filled < len(second) / 2
        program.goes_on_from(second)
        assert program.say("None") == changed != before


def test_threads_go_on_from_one_moment():
    pool, memory = new_pool()
    lines = Lines()
    life = Companion(pool, ["--", str(TORN)], lines.to_read, lines.out_write)
    for _ in range(3):
        assert lines.say("a line") == b"well\n"
        begun = life.ask(CUT, bytes_=CHUNK)
        snapshot = Snapshot(life)
        life.ask(RESUME)
        image, _ = read_image(snapshot, begun, memory)
        snapshot.end()
        assert lines.say("a line") == b"well\n"
        life.kill()
        life = bring_back(pool, memory, image, lines.to_read, lines.out_write)
    assert lines.say("a line") == b"well\n"
    life.kill()


def refused_then_copied(prepare, number, why, stderr=None):
    with started(stderr) as program:
        before = program.say(prepare)
        begun = program.cut()
        try:
            Snapshot(program.life)
            raise AssertionError("there is a snapshot")
        except No as no:
            assert no.args[0] == number and why in no.args[1], no
        image = program.image(program.life, begun)
        program.life.ask(RESUME)
        program.goes_on_from(image)
        assert program.say("None").split()[0] == before.split()[0]


def test_shared_memory():
    refused_then_copied("share(4 << 20)", NOW, "shares memory")
    with started() as program:
        before = program.say("share(256 << 10)")
        begun = program.cut()
        snapshot = Snapshot(program.life)
        program.life.ask(RESUME)
        program.say("rewrite()")
        image = program.image(snapshot, begun)
        snapshot.end()
        program.goes_on_from(image)
        assert program.say("None").split()[0] == before.split()[0]


def test_memory_that_no_child_gets():
    for advice in ("mmap.MADV_DONTFORK", "18"):
        refused_then_copied(f"advise({advice})", NOW, "from its children")


def test_a_fork_that_fails():
    with started() as program:
        before = program.say("no_parents_children()")
        begun = program.cut()
        try:
            Snapshot(program.life)
            raise AssertionError("there is a snapshot")
        except No as no:
            assert no.args[0] == AGAIN and "cannot be copied" in no.args[1], no
        assert len(program.image(program.life, begun)) == begun["bytes"]
        program.life.ask(RESUME)
        assert program.say("None") == before


def test_a_device_may_write_unseen():
    device = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    refused_then_copied("None", NOW, "a device", stderr=device)
    os.close(device)


def test_they_do_not_see_each_other():
    with started() as program:
        begun = program.cut()
        snapshot = Snapshot(program.life)
        program.life.ask(RESUME)
        assert b"no child" in program.say("waits()")
        assert len(os.listdir(f"/proc/{snapshot.process}/fd")) == 1
        assert os.getpgid(snapshot.process) == snapshot.process
        os.kill(snapshot.process, signal.SIGTERM)
        program.cut()  # it has no child
        program.life.ask(RESUME)
        program.life.kill()
        assert len(program.image(snapshot, begun)) == begun["bytes"]
        assert snapshot.end() == 0


def test_a_killed_snapshot():
    with started() as program:
        before = program.say("None")
        begun = program.cut()
        snapshot = Snapshot(program.life)
        program.life.ask(RESUME)
        os.kill(snapshot.process, signal.SIGKILL)
        try:
            program.image(snapshot, begun)
            raise AssertionError("a dead one answers")
        except (EOFError, OSError):
            pass
        snapshot.end()
        assert program.say("None") == before
        assert program.image(program.life, program.cut()) != b""


def test_it_ends_with_its_companion():
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        program = Program()
        program.cut()
        snapshot = Snapshot(program.life)
        program.life.ask(RESUME)
        holder = os.fork()  # holds the line open
        if holder != 0:
            os.write(writing, f"{snapshot.process} {holder}".encode())
        signal.pause()
    snapshot, holder = map(int, os.read(reading, 99).split())
    handle = os.pidfd_open(snapshot)
    os.kill(pid, signal.SIGKILL)
    ended, _, _ = select.select([handle], [], [], END_S)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert ended


def test_without_a_cut_there_is_none():
    with started() as program:
        try:
            program.life.ask(SNAPSHOT)
            raise AssertionError("there is a snapshot")
        except No as no:
            assert "no cut is under way" in no.args[1]


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
