"""Images that keep chunks of the one before: what the boot program makes of memory that is written,
zeroed, mapped anew, moved and given back, and the same process out of the chunks.

The test plays the companion (companion.py). BACKSTAY_SEED repeats a run.
Usage: kept_test.py BOOT PROGRAMS
"""

import contextlib
import os
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
