"""Contents of files that an image holds (--contents): the program notices nothing, and a file that
another process changes meanwhile ends the cut.

The test plays the companion (companion.py).
Usage: contents_test.py BOOT
"""

import os
import sys
import tempfile
from pathlib import Path

from companion import (
    CHUNK, CUT, FILL, POOL, POOL_ASK, RESUME, Companion, Lines, No, Snapshot, bring_back,
    new_pool, read_image)

# At each line it says what it has mapped of its files, and what they hold.
PROGRAM = """
import mmap, os, struct, sys, zlib
if sys.argv[1:] == ["exec"]:
    os.execv("/usr/bin/python3", ["python3", sys.argv[0]])
held = os.open("held", os.O_RDWR | os.O_CREAT)
again = os.open("held", os.O_WRONLY | os.O_APPEND)
empty = os.open("held.empty", os.O_RDWR | os.O_CREAT)
read = os.open("held.read", os.O_RDONLY | os.O_CREAT)
os.pwrite(held, b"abc" * 10000, 0)
# What looks like a lock that this thread holds.
os.pwrite(held, struct.pack("14I", 3, 0, 1, 1, 0, 0, os.getpid(), 0, 0, 0, 0, 0, 0, 0), 8192)
LOCK = zlib.crc32(os.pread(held, 56, 8192))
mapped = mmap.mmap(held, 0, access=mmap.ACCESS_READ) if sys.argv[1:] == ["map"] else None
for line in sys.stdin:
    maps = [one for one in open("/proc/self/maps") if "/held" in one]
    said = os.pread(held, 100000, 0)
    if zlib.crc32(said[8192:8248]) == LOCK:
        said = (said[:8192] + said[8248:]).strip(b"abc")
    print(len(maps) - (mapped is not None), said, flush=True)
    if line == "write\\n":
        os.write(again, b"WRITTEN")
"""


class Program:
    def __init__(self, folder, pool, *words):
        self.folder = folder
        self.pool, self.memory = pool
        self.lines = Lines()
        (folder / "app.py").write_text(f"import os\nos.chdir({str(folder)!r})\n{PROGRAM}")
        self.options = ["--contents", f"/nowhere/*\n{folder}/held*\n"]
        self.life = Companion(
            self.pool, [*self.options, "--", "/usr/bin/python3", str(folder / "app.py"), *words],
            self.lines.to_read, self.lines.out_write)
        assert self.lines.say("look") == b"0 b''\n"
        if words == ("exec",):  # another boot program has begun
            self.life.ask(POOL_ASK, bytes_=POOL, descriptor=self.pool)

    def read(self):
        begun = self.life.ask(CUT, bytes_=CHUNK)
        assert (begun["contents"], begun["why"]) == (2, ""), begun
        return read_image(self.life, begun, self.memory)[0]

    def goes_on_from(self, image):
        self.life.kill()
        self.life = bring_back(self.pool, self.memory, image, self.lines.to_read,
                               self.lines.out_write)


def comes_back(pool, folder, *words):
    program = Program(folder, pool, *words)
    image = program.read()
    program.life.ask(RESUME)
    assert program.lines.say("write") == b"0 b''\n"
    assert program.lines.say("look") == b"0 b'WRITTEN'\n"
    (folder / "held.empty").unlink()
    program.goes_on_from(image)
    assert program.lines.say("look") == b"0 b''\n"
    assert (folder / "held.empty").stat().st_size == 0
    program.life.kill()


def comes_back_out_of_a_snapshot(pool, folder):
    program = Program(folder, pool)
    begun = program.life.ask(CUT, bytes_=CHUNK)
    snapshot = Snapshot(program.life)
    program.life.ask(RESUME)
    assert program.lines.say("write") == b"0 b''\n"
    image, _ = read_image(snapshot, begun, program.memory)
    assert snapshot.end() == 0
    program.goes_on_from(image)
    assert program.lines.say("look") == b"0 b''\n"
    program.life.kill()


def is_refused(pool, folder, change):
    """The next cut takes it as it is then."""
    program = Program(folder, pool)
    begun = program.life.ask(CUT, bytes_=CHUNK)
    changed = b"" if change == "shorter" else b"cba" * 10000
    (folder / "held").write_bytes(changed)
    try:
        for at in range(0, begun["bytes"], CHUNK):
            program.life.ask(FILL, bytes_=min(CHUNK, begun["bytes"] - at))
    except No as why:
        assert "was changed by another process" in str(why), why
    else:
        raise AssertionError("a file that was changed is taken")
    program.life.ask(RESUME)
    image = program.read()
    program.life.ask(RESUME)
    program.goes_on_from(image)
    assert (folder / "held").read_bytes() == changed
    program.life.kill()


def is_refused_for_a_snapshot(pool, folder):
    program = Program(folder, pool)
    program.life.ask(CUT, bytes_=CHUNK)
    (folder / "held").write_bytes(b"cba" * 10000)
    try:
        Snapshot(program.life)
    except No as why:
        assert "was changed by another process" in str(why), why
    else:
        raise AssertionError("a file that was changed is taken")
    program.life.ask(RESUME)
    assert program.lines.say("look").startswith(b"0 ")
    program.life.kill()


def main():
    pool = new_pool()
    with tempfile.TemporaryDirectory() as folder:
        for number, (test, *words) in enumerate(
                [(comes_back,), (comes_back, "exec"), (comes_back, "map"),
                 (comes_back_out_of_a_snapshot,),
                 (is_refused, "other"), (is_refused, "shorter"), (is_refused_for_a_snapshot,)]):
            place = Path(folder).resolve() / str(number)
            os.mkdir(place)
            print(test.__name__, *words, flush=True)
            test(pool, place, *words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
