"""Memory whose read may end in a signal, or whose limits a cut must keep. The program goes on, and
comes back with every byte, whether it is copied as it stands or out of a forked snapshot.

The test plays the companion (companion.py).
Usage: memory_test.py BOOT
"""

import contextlib
import sys
import tempfile
from pathlib import Path

from companion import (
    CHUNK, CUT, RESUME, Companion, Lines, No, Snapshot, bring_back, new_pool, read_image)

# Makes its memory, of 16 pages, and prints a checksum of what may be read of it at each line.
PROGRAM = """
import ctypes, mmap, os, sys, zlib
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
PAGE = 4096
def map_pages(flags, file=-1):
    at = libc.mmap(None, ctypes.c_size_t(16 * PAGE), 3, flags, file, 0)
    ctypes.memset(at, 7, PAGE)
    return at
def advise(page, pages, what):
    at = ctypes.c_void_p(memory + page * PAGE)
    return libc.madvise(at, ctypes.c_size_t(pages * PAGE), what)
def file_of(pages, name="data"):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.write(file, b"f" * (pages * PAGE))
    return file
def removed(file):
    os.unlink("data")
    return file
readable = range(16)
def look():
    pass
exec(sys.argv[1])
for line in sys.stdin:
    look()
    total = 0
    for page in readable:
        total = zlib.crc32(ctypes.string_at(memory + page * PAGE, PAGE), total)
    print(total, flush=True)
"""
SHARED, PRIVATE, WITHOUT_FILE = 1, 2, 0x22

# A mutex that checks its owner, is held, and ends in the second page.
LOCK = """
attributes, mutex = ctypes.create_string_buffer(64), ctypes.c_void_p(memory + PAGE - 24)
assert libc.pthread_mutexattr_init(attributes) == 0
assert libc.pthread_mutexattr_settype(attributes, 2) == 0  # PTHREAD_MUTEX_ERRORCHECK
ready = ctypes.create_string_buffer(40)
assert libc.pthread_mutex_init(ready, attributes) == 0
ctypes.memmove(mutex, ready, 24)  # as one that the linker has made: the next page is not touched
assert libc.pthread_mutex_lock(mutex) == 0
readable = []
def look():
    assert libc.pthread_mutex_unlock(mutex) == 0, "it is another thread's"
    assert libc.pthread_mutex_lock(mutex) == 0
"""
KINDS = {
    "zeros in the place of a file's bytes": f"""
memory = map_pages({PRIVATE}, file_of(16))
ctypes.memset(memory + 2 * PAGE, 0, 3 * PAGE)
""",
    "guards": f"""
memory = map_pages({WITHOUT_FILE})
advise(3, 2, 102)  # MADV_GUARD_INSTALL, of Linux 6.13 and later
readable = [0, 1, 2, 5, 6]
""",
    "memory that grows down": f"""
room = libc.mmap(None, ctypes.c_size_t(1024 * PAGE), 0, {WITHOUT_FILE}, -1, 0)
assert libc.munmap(ctypes.c_void_p(room), ctypes.c_size_t(1024 * PAGE)) == 0
memory = libc.mmap(ctypes.c_void_p(room + 1000 * PAGE), ctypes.c_size_t(16 * PAGE), 3,
                   {WITHOUT_FILE} | 0x110, -1, 0)  # MAP_GROWSDOWN | MAP_FIXED
lowest = memory
def look():
    global lowest
    for _ in range(50):
        lowest -= PAGE
        ctypes.memset(lowest, 7, 1)
""",
    "shared memory that is longer than its file": f"""
file = os.memfd_create("short")
os.ftruncate(file, PAGE)
memory = map_pages({SHARED}, file)
readable = [0]
""",
    "a private mapping that is longer than its removed file": f"""
memory = map_pages({PRIVATE}, removed(file_of(3)))
readable = [0, 1, 2]
""",
    "a mapping in parts that become one again": f"""
memory = map_pages({WITHOUT_FILE})
ctypes.memset(memory + 15 * PAGE, 7, PAGE)
def protect(page, pages, what):
    at = ctypes.c_void_p(memory + page * PAGE)
    assert libc.mprotect(at, ctypes.c_size_t(pages * PAGE), what) == 0
def look():
    protect(0, 16, 3)
    ends = [line.split()[0].split("-") for line in open("/proc/self/maps")]
    parts = [1 for start, end in ends
             if int(start, 16) < memory + 16 * PAGE and int(end, 16) > memory]
    protect(8, 1, 1)
    assert len(parts) == 1, "they stay apart"
look()
""",
    "numbers that look like a lock with the thread's id": f"""
import struct
memory, me = map_pages({WITHOUT_FILE}), os.getpid()
numbers = [
    3, 0, 0, 0, 0, 0, me, 0, 0, 0, 0, 0, 0, 0,  # as before the size of a chunk of malloc
    3, 0, 1, 1, 0, 0, me, 0, 0, 0, 7, 0, 0, 0,
    1, 1, me, 1, 1, 0, 7, 0, 0, 0,
]
ctypes.memmove(memory, struct.pack(f"{{len(numbers)}}I", *numbers), 4 * len(numbers))
""",
    "a lock that ends in a page of zeros": f"memory = map_pages({WITHOUT_FILE})" + LOCK,
    "a lock that ends in a file's page of zeros": f"""
os.ftruncate(file := os.open("data", os.O_RDWR | os.O_CREAT), 16 * PAGE)
memory = map_pages({PRIVATE}, file)""" + LOCK,
    "a lock that ends in a page of zeros of shared memory": f"""
os.ftruncate(file := os.memfd_create("lock"), 16 * PAGE)
memory = map_pages({SHARED}, file)""" + LOCK,
    "a shared mapping that is longer than its removed file": f"""
memory = map_pages({SHARED}, removed(file_of(3)))
readable = [0, 1, 2]
""",
}
# The program cannot map as much as the tables of an image may need.
LIMITED = """
import resource
memory = map_pages({flags})
pages = int(open("/proc/self/statm").read().split()[{word}])
resource.setrlimit(resource.{limit}, ((pages + 1000) * PAGE, -1))
"""
# All of its memory, also what comes, is in RAM (mlockall); a cut may not bring much more there.
LOCKED = f"""
memory = map_pages({WITHOUT_FILE})
assert libc.mlockall(3) == 0
def most():
    lines = dict(line.split(":") for line in open("/proc/self/status"))
    return int(lines["VmHWM"].split()[0]) << 10
before = most()
def look():
    assert most() < before + (512 << 20), "a cut has filled the memory"
"""
# io_setup: the kernel's ring is mapped, and the kernel may write into memory unseen.
RING = f"""
memory = map_pages({WITHOUT_FILE})
context = ctypes.c_ulong(0)
assert libc.syscall(206, 8, ctypes.byref(context)) == 0
"""
# A shared mapping of a file that may not be written at the cut. The cut finds out whether it may
# become so, and leaves it as it was.
READ_ONLY = f"""
memory = map_pages({SHARED}, file_of(16))
PROTECTION = {{protection}}
assert libc.mprotect(ctypes.c_void_p(memory), ctypes.c_size_t(16 * PAGE), PROTECTION) == 0
readable = range(16 if PROTECTION else 0)
def look():
    begins = f"{{{{memory:x}}}}-"
    mine = [line.split()[1] for line in open("/proc/self/maps") if line.startswith(begins)]
    assert mine == [{{shown!r}}], mine
"""
WRITABLE = f"memory = map_pages({SHARED}, file_of(16))"
OPENED_TO_BE_READ = f"""
os.close(file_of(16))
memory = libc.mmap(None, ctypes.c_size_t(16 * PAGE), 1, {SHARED}, os.open("data", os.O_RDONLY), 0)
"""


class Program:
    def __init__(self, folder, pool, setup):
        self.pool, self.memory = pool
        self.lines = Lines()
        path = folder / "app.py"
        path.write_text(f"import os\nos.chdir({str(folder)!r})\n{PROGRAM}")
        self.life = Companion(self.pool, ["--", "/usr/bin/python3", str(path), setup],
                              self.lines.to_read, self.lines.out_write)

    def look(self):
        return self.lines.say("look")

    def image(self, forks):
        begun = self.life.ask(CUT, bytes_=CHUNK)
        snapshot = Snapshot(self.life) if forks else None
        image, _ = read_image(snapshot or self.life, begun, self.memory)
        self.life.ask(RESUME)
        assert snapshot is None or snapshot.end() == 0
        return image

    def goes_on_from(self, image):
        self.life.kill()
        self.life = bring_back(self.pool, self.memory, image, self.lines.to_read,
                               self.lines.out_write)


@contextlib.contextmanager
def started(pool, setup):
    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder), pool, setup)
        try:
            yield program
        finally:
            program.life.kill()


def comes_back(pool, setup, forks):
    with started(pool, setup) as program:
        before = program.look()
        image = program.image(forks)
        assert program.look() == before
        program.goes_on_from(image)
        assert program.look() == before


def is_refused(pool, setup, word):
    with started(pool, setup) as program:
        before = program.look()
        try:
            program.image(forks=False)
        except No as why:
            assert word in str(why), why
        else:
            raise AssertionError(f"{word} is not refused")
        assert program.look() == before


def what_is_not_in_image(program, before):
    begun = program.life.ask(CUT, bytes_=CHUNK)
    program.life.ask(RESUME)
    assert program.look() == before
    return Path(begun["why"]).name


def tells_what_may_become_writable(pool):
    """Before a restart and after it."""
    for setup, not_in_image in (
        (READ_ONLY.format(protection=1, shown="r--s"), "data"),
        (READ_ONLY.format(protection=0, shown="---s"), "data"),
        (WRITABLE, ""),
        (OPENED_TO_BE_READ, ""),
    ):
        with started(pool, setup) as program:
            before = program.look()
            assert what_is_not_in_image(program, before) == not_in_image, setup
            program.goes_on_from(program.image(forks=False))
            assert program.look() == before
            assert what_is_not_in_image(program, before) == not_in_image, setup


def main():
    pool = new_pool()
    tells_what_may_become_writable(pool)
    for kind, setup in KINDS.items():
        for forks in (False, True):
            print(kind, "in a snapshot" if forks else "as it stands", flush=True)
            comes_back(pool, setup, forks)
    is_refused(pool, RING, "io_setup")
    for limit, word in (("RLIMIT_AS", 0), ("RLIMIT_DATA", 5)):
        setup = LIMITED.format(flags=WITHOUT_FILE, word=word, limit=limit)
        is_refused(pool, setup, "is the program's memory limited")
    comes_back(pool, LOCKED, forks=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
