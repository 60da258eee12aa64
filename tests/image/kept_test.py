"""Images that keep chunks of the one before: what the boot program makes of memory that is written,
zeroed, mapped anew, moved and given back, and the same process out of the chunks.

The test plays the companion (companion.py). BACKSTAY_SEED repeats a run.
Usage: kept_test.py BOOT PROGRAMS [VERSIONS]
VERSIONS: only so many versions of a map that changes at random.
"""

import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from booted import END_S, seed
from companion import CHUNK, Companion, Lines, bring_back, new_pool, take_image

PROGRAMS = Path(sys.argv[2]).resolve()

# Changes its memory in a random way at each line that it reads, and prints a checksum of all.
PROGRAM = """
import ctypes, mmap, random, sys, zlib
draw = random.Random(int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
libc.mremap.restype = ctypes.c_void_p
libc.mmap.restype = ctypes.c_void_p
PAGE, PAGES = 4096, 3000
def new():
    at = libc.mmap(None, ctypes.c_size_t(PAGES * PAGE), 3, 34, -1, 0)
    ctypes.memmove(at, draw.randbytes(PAGES * PAGE), PAGES * PAGE)
    return at
areas = [new() for _ in range(3)]
def page():
    return draw.choice(areas) + draw.randrange(PAGES) * PAGE
def write():
    for _ in range(60):
        ctypes.memmove(page(), draw.randbytes(PAGE), PAGE)
def zero():
    for _ in range(60):
        ctypes.memset(page(), 0, PAGE)
def give_back():
    for _ in range(60):
        libc.madvise(ctypes.c_void_p(page()), ctypes.c_size_t(PAGE), 4)
def anew():
    old = areas.pop(draw.randrange(3))
    libc.munmap(ctypes.c_void_p(old), ctypes.c_size_t(PAGES * PAGE))
    areas.append(new())
def move():
    old = areas.pop(draw.randrange(3))
    held = libc.mmap(None, ctypes.c_size_t(PAGES * PAGE), 3, 34, -1, 0)
    at = libc.mremap(ctypes.c_void_p(old), ctypes.c_size_t(PAGES * PAGE),
                     ctypes.c_size_t(PAGES * PAGE), 3, ctypes.c_void_p(held))
    ctypes.memset(at + draw.randrange(PAGES) * PAGE, 7, 1)
    areas.append(at)
def swap():  # what lay at one address lies at the other
    a, b = areas[0], areas[1]
    held = libc.mmap(None, ctypes.c_size_t(PAGES * PAGE), 3, 34, -1, 0)
    for source, target in ((a, held), (b, a), (held, b)):
        libc.mremap(ctypes.c_void_p(source), ctypes.c_size_t(PAGES * PAGE),
                    ctypes.c_size_t(PAGES * PAGE), 3, ctypes.c_void_p(target))
def hide():
    at = page()
    libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(PAGE), 1)
kinds = [write, zero, give_back, anew, move, swap, hide, write, write]
while line := sys.stdin.readline():
    for _ in range(1 if line == "one\\n" else 0):
        change = draw.choice(kinds)
        for at in areas:
            libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(PAGES * PAGE), 3)
        change()
    total = 0
    for at in areas:
        total = zlib.crc32((ctypes.c_char * (PAGES * PAGE)).from_address(at), total)
    print(total, [hex(at) for at in areas], flush=True)
"""


# The end of its memory leaves, and returns; then the rest is written, which the kernel watches no
# more, and written again. At each line one of these, and a checksum of all.
LEAVES = """
import ctypes, mmap, random, sys, zlib
libc = ctypes.CDLL(None, use_errno=True)
libc.mremap.restype = ctypes.c_void_p
libc.mmap.restype = ctypes.c_void_p
PAGE, PAGES, END = 4096, 3000, 300
def map_at(at, pages, protection, fixed):
    return libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(pages * PAGE), protection, 34 | fixed,
                     -1, 0)
def move(source, target):
    bytes_ = ctypes.c_size_t(END * PAGE)
    at = libc.mremap(ctypes.c_void_p(source), bytes_, bytes_, 3, ctypes.c_void_p(target))
    assert at == target, ctypes.get_errno()
room = map_at(None, 3 * PAGES, 0, 0)
start = map_at(room + PAGES * PAGE, PAGES, 3, 16)
end, away = start + (PAGES - END) * PAGE, room + (2 * PAGES + END) * PAGE
ctypes.memmove(start, random.Random(1).randbytes(PAGES * PAGE), PAGES * PAGE)
def leave():
    move(end, away)
    return away
def come_back():
    move(away, end)
    write(7)
    return end
def write(value):
    for page in range(0, PAGES - END, 100):
        ctypes.memset(start + page * PAGE, value, PAGE)
    return place
place = end
steps = [leave, come_back, lambda: write(8), lambda: write(9)]
while line := sys.stdin.readline():
    if line == "one\\n":
        place = steps.pop(0)()
    total = zlib.crc32(ctypes.string_at(start, (PAGES - END) * PAGE))
    print(zlib.crc32(ctypes.string_at(place, END * PAGE), total), flush=True)
"""


# Changes its map in a random way at each line that it reads: neighbours that were apart become one
# mapping, and mappings are cut. Prints a checksum of what may be read, and which pages there are.
MAPS = """
import ctypes, os, random, sys, zlib
draw = random.Random(int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
PAGE, PAGES = 4096, 1200
STILL = 200  # of these, at the end, that do not change: an image keeps them
def map_at(at, pages, protection, flags, file=-1, offset=0):
    at = libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(pages * PAGE), protection, flags, file,
                   ctypes.c_long(offset))
    assert at != ctypes.c_void_p(-1).value, ctypes.get_errno()
    return at
room = map_at(None, PAGES + 2, 0, 34) + PAGE  # nothing else comes beside it
now = [0] * (PAGES - STILL)  # protection; None: not mapped
still = room + len(now) * PAGE
map_at(still, STILL, 3, 50)
ctypes.memmove(still, draw.randbytes(STILL * PAGE), STILL * PAGE)
os.chdir(os.path.dirname(sys.argv[0]))
files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in ("read", "shared")]
files.append(os.memfd_create("memory"))
for one in files:
    os.write(one, draw.randbytes(PAGES * PAGE))
def write(page):
    if now[page] == 3:
        ctypes.memmove(room + page * PAGE, draw.randbytes(64), 64)
def map_anew(page, count):
    flags, file = draw.choice([(50, -1)] * 20 + list(zip((18, 17, 17, 49), [*files, -1])))
    map_at(room + page * PAGE, count, 3, flags, file, page * PAGE)
    now[page : page + count] = [3] * count
    if draw.randrange(4) == 0:
        touch(page, count)
def unmap(page, count):
    assert libc.munmap(ctypes.c_void_p(room + page * PAGE), ctypes.c_size_t(count * PAGE)) == 0
    now[page : page + count] = [None] * count
def protect(page, count):
    what = draw.choice([0, 1, 1, 3, 3, 3])
    for each in range(page, page + count):
        if now[each] is not None:
            libc.mprotect(ctypes.c_void_p(room + each * PAGE), ctypes.c_size_t(PAGE), what)
            now[each] = what
def advise(page, count):  # give back; huge pages or not; in a core file or not
    libc.madvise(ctypes.c_void_p(room + page * PAGE), ctypes.c_size_t(count * PAGE),
                 draw.choice([4, 14, 15, 16, 17]))
def touch(page, count):
    for each in range(page, page + count):
        write(each)
def every_other(page, count):
    change = draw.choice([unmap, map_anew, map_anew, map_anew, protect, advise, touch])
    for each in range(page, page + count, 2):
        change(each, 1)
kinds = [map_anew, unmap, protect, advise, touch] + [every_other] * 5
present = ctypes.create_string_buffer(1)
while line := sys.stdin.readline():
    for _ in range(draw.randrange(12) if line == "one\\n" else 0):
        page = draw.randrange(len(now))
        draw.choice(kinds)(page, min(len(now) - page, draw.choice([1, 2, 7, 60, 300, 800])))
    total, there = zlib.crc32(ctypes.string_at(still, STILL * PAGE)), []
    for page, protection in enumerate(now):
        at = ctypes.c_void_p(room + page * PAGE)
        there.append(libc.mincore(at, ctypes.c_size_t(PAGE), present) == 0)
        if protection:
            total = zlib.crc32(ctypes.string_at(at, PAGE), total)
    print(total, zlib.crc32(bytes(there)), flush=True)
"""


@contextlib.contextmanager
def started(pool, lines, value, stderr=None, program=PROGRAM):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "app.py"
        path.write_text(program)
        yield Companion(pool, ["--", "/usr/bin/python3", str(path), str(value)],
                        lines.to_read, lines.out_write, stderr)


def keeps_what_is_unchanged(pool, memory, stderr=None):
    lines = Lines()
    with started(pool, lines, 1, stderr) as life:
        lines.say("look")
        image, _ = take_image(life, memory, None)
        _, filled = take_image(life, memory, image)
        life.kill()
    return filled < len(image) / 2


def test_a_device_may_write_unseen(pool, memory):
    device = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    assert not keeps_what_is_unchanged(pool, memory, device), "pages are kept beside a device"
    os.close(device)


def test_random_changes_come_back(value, pool, memory):
    lines = Lines()
    with started(pool, lines, value) as life:
        lines.say("look")
        image, kept_once, kept_first, sizes = None, 0, 0, []
        for step in range(60):
            said = lines.say("one")
            image, filled = take_image(life, memory, image)
            sizes.append(filled)
            kept_once += filled < len(image) / 2
            kept_first += step % 8 == 4 and filled < len(image) / 2
            assert lines.say("look") == said
            if step % 4 == 3:  # after each second restart the next image is whole
                life.kill()
                life = bring_back(pool, memory, image, lines.to_read, lines.out_write,
                                  watched=step % 8 == 3)
                assert lines.say("look") == said, f"step {step}"
        life.kill()
    assert kept_once > 10 and kept_first > 2, sizes


def test_random_maps_come_back(value, pool, memory, versions):
    """Each version of each life, in a process beside the one that goes on."""
    draw = random.Random(value)
    lines, beside = Lines(), Lines()
    image, kept = None, 0
    with started(pool, lines, value, program=MAPS) as life:
        lines.say("look")
        for version in range(versions):
            said = lines.say("one")
            image, filled = take_image(life, memory, image)
            kept += len(image) - filled > 1 << 20
            assert lines.say("look") == said
            copy = bring_back(pool, memory, image, beside.to_read, beside.out_write)
            assert beside.say("look") == said, f"version {version}"
            copy.kill()
            if draw.randrange(6) == 0:
                life.kill()
                life = bring_back(pool, memory, image, lines.to_read, lines.out_write,
                                  watched=True)
        life.kill()
    assert kept > versions / 3, kept


def test_a_part_that_leaves_and_returns(pool, memory, steps):
    lines = Lines()
    with started(pool, lines, 1, program=LEAVES) as life:
        lines.say("look")
        image, _ = take_image(life, memory, None)
        for _ in range(steps):
            said = lines.say("one")
            image, _ = take_image(life, memory, image)
        life.kill()
        life = bring_back(pool, memory, image, lines.to_read, lines.out_write)
        assert lines.say("look") == said, f"after {steps} steps"
        life.kill()


def test_a_page_behind_the_last_kept_chunk(pool, memory):
    lines = Lines()
    life = Companion(pool, ["--", f"{PROGRAMS}/image_low"], lines.to_read, lines.out_write)
    lines.say("look")
    image, _ = take_image(life, memory, None)
    said = lines.say("one")
    image, filled = take_image(life, memory, image)
    assert len(image) - filled == CHUNK, "one chunk is to be kept"
    life.kill()
    life = bring_back(pool, memory, image, lines.to_read, lines.out_write)
    assert lines.say("look") == said
    life.kill()


def main():
    value = seed()
    pool, memory = new_pool()
    if not keeps_what_is_unchanged(pool, memory):
        print("left out: this kernel does not watch writes (userfaultfd of Linux 6.7)")
        return 77
    if len(sys.argv) > 3:
        test_random_maps_come_back(value, pool, memory, int(sys.argv[3]))
        return 0
    began = time.monotonic()
    test_a_device_may_write_unseen(pool, memory)
    for steps in (2, 3, 4):
        test_a_part_that_leaves_and_returns(pool, memory, steps)
    test_a_page_behind_the_last_kept_chunk(pool, memory)
    test_random_changes_come_back(value, pool, memory)
    assert time.monotonic() - began < END_S * 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
