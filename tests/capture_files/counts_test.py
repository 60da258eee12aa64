#!/usr/bin/env python3
"""What the event log says of captured files is what a known program wrote, to the byte.

    counts_test.py BACKSTAY FOLDER
"""

import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
from capturing import World  # noqa: E402
from written import need, sum_with  # noqa: E402

PYTHON = os.environ.get("BACKSTAY_NUMPY_PYTHON", sys.executable)
# A thread, a child and a stream write as well; `kept` is synced and written after that; `small` is
# not for the pool; `shared` is made real.
PROGRAM = """
import ctypes, mmap, os, sys, threading
os.chdir(sys.argv[1])
def make(name): return os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
def many(name, count, bytes):
    file = make(name)
    for number in range(count): os.write(file, b'x' * bytes)
    os.close(file)
thread = threading.Thread(target=many, args=('thread', 1000, 63))
thread.start(); thread.join()
many('main', 100, 4096)
if os.fork() == 0:
    many('child', 7, 300 << 10)
    os._exit(0)
os.wait()
kept = make('kept')
os.pwrite(kept, b'y' * 64, 0)
os.writev(kept, [b'z' * 5000, b'z' * 5000])
os.fsync(kept)
os.write(kept, b'w' * (1 << 20))
os.close(kept)
many('small', 3, 256)
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen(b'stream', b'w'))
ten = ctypes.c_size_t(10)
for number in range(50): libc.fwrite(b'f' * 100, ten, ten, stream)
libc.fclose(stream)
copied, kept = make('copied'), os.open('kept', os.O_RDONLY)
while os.copy_file_range(kept, copied, 65000): pass
os.close(copied)
shared = make('shared')
os.write(shared, b's' * 10000)
mmap.mmap(shared, 10000)
os.write(shared, b's' * 10000)
os.close(shared)
"""
# below: (writes, bytes)
KEPT = 10000 + (1 << 20)  # bytes; copied by 17 calls, and one that finds nothing more
WRITES = {64: (1000, 63000), 256: (51, 64 + 5000), 1 << 10: (3, 768),
          16 << 10: (102, 409600 + 20000), 64 << 10: (18, KEPT), 512 << 10: (7, 7 * (300 << 10)),
          0: (1, 1 << 20)}  # fmt: skip
CAPTURED = (6, 63000 + 409600 + 7 * (300 << 10) + KEPT + 5000 + KEPT)


def by_library(world, folder):
    done = world.run(folder, PYTHON, "-c", PROGRAM, folder)
    need(done.returncode == 0, done)
    found = sum_with(world, closes=7, captured=CAPTURED[0])
    need(found.writes == WRITES, f"writes: {found.writes}, not {WRITES}")
    files = found.files
    need((files["captured"], files["captured bytes"]) == CAPTURED, files)
    need((files["direct"], files["direct bytes"]) == (1, 768), files)
    need((files["real"], files["real bytes"]) == (1, 10000), files)
    need(dict(found.calls) == {"open": 8, "close": 7, "fsync": 1}, found.calls)


def killed(world, folder):
    """What was written before the last close is known all the same."""
    program = ("import os, sys; os.chdir(sys.argv[1]); f = os.open('x', os.O_WRONLY | os.O_CREAT)\n"
               "for n in range(5): os.write(f, b'x' * 8000)\n"
               "os.close(f); os.kill(os.getpid(), 9)")
    done = world.run(folder, PYTHON, "-c", program, folder)
    need(done.returncode != 0, done)
    need(world.run(folder, "true").returncode == 0, "settled")
    found = sum_with(world, closes=0, captured=1)
    need(found.writes == {16 << 10: (5, 40000)}, found.writes)
    need((found.files["captured"], found.files["captured bytes"]) == (1, 40000), found.files)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    for test in (by_library, killed):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with World(program, BACKSTAY_CAPTURE_POOL_KIB="4") as world:
            test(world, folder)


if __name__ == "__main__":
    main()
