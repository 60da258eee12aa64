"""Images that keep chunks of the one before: what the boot program makes of memory that is written,
zeroed, mapped anew, moved and given back, and the same process out of the chunks.

The test plays the companion (src/capture/image/format/requests.h). BACKSTAY_SEED repeats a run.
Usage: kept_test.py BOOT
"""

import array
import contextlib
import mmap
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from booted import BOOT, END_S, seed

CHUNK = 256 << 10
POOL = 256 << 20
REQUEST = struct.Struct("<II QQQ II 1024s")
ANSWER = struct.Struct("<II QQ 128Q QQQQ 1024s")
POOL_ASK, CUT, FILL, RESUME, TABLE, TAKE, GO, KEPT = range(1, 9)

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


class Companion:
    """A life of a program under the boot program."""

    def __init__(self, pool, words, stdin, stdout, stderr=None):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(60)
        with theirs:
            command = [BOOT, "--companion", str(theirs.fileno()), *words]
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=stdin,
                                            stdout=stdout, stderr=stderr)
        self.ask(POOL_ASK, bytes_=POOL, descriptor=pool)

    def ask(self, kind, at=0, bytes_=0, object_=0, watches=0, keeps=0, descriptor=None):
        packet = REQUEST.pack(kind, 0, at, bytes_, object_, watches, keeps, b"")
        rights = []
        if descriptor is not None:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        self.ours.sendmsg([packet], rights)
        answer = ANSWER.unpack(self.ours.recv(ANSWER.size))
        assert answer[0] == 0, answer[-1].split(b"\0")[0].decode()
        return {"bytes": answer[2], "kept_bytes": answer[3],
                "kept": list(zip(answer[4:132:2], answer[5:132:2], strict=True))}

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.ours.close()


def kept_chunks(life, kept_bytes):
    chunks = []
    while sum(size for _, size in chunks) < kept_bytes:
        some = [one for one in life.ask(KEPT, at=len(chunks))["kept"] if one[1] > 0]
        assert some, "a kept chunk is missing"
        chunks += some
    return chunks


def take_image(life, memory, before):
    """The object, of chunks of the one before and what is filled; and how much was filled."""
    begun = life.ask(CUT, bytes_=CHUNK, watches=1, keeps=1 if before else 0)
    image = bytearray()
    for offset, size in kept_chunks(life, begun["kept_bytes"]):
        image += before[offset : offset + size]
    filled = begun["bytes"] - len(image)
    for at in range(0, filled, CHUNK):
        size = min(CHUNK, filled - at)
        life.ask(FILL, at=0, bytes_=size)
        image += memory[:size]
    life.ask(RESUME)
    return image, filled


def bring_back(pool, memory, image, stdin, stdout):
    life = Companion(pool, ["--bring-back"], stdin, stdout)
    table = struct.unpack_from("<Q", image, len(image) - 64 + 16)[0]
    tail = os.memfd_create("table")
    os.write(tail, image[table:])
    life.ask(TABLE, bytes_=len(image) - table, object_=len(image), descriptor=tail)
    os.close(tail)
    for at in range(0, len(image), CHUNK):
        piece = image[at : at + CHUNK]
        memory[: len(piece)] = piece
        life.ask(TAKE, bytes_=len(piece), object_=at)
    life.ask(GO)
    return life


class Lines:
    """The program's input and output, which stay while its lives change."""

    def __init__(self):
        self.to_read, self.to_write = os.pipe()
        self.out_read, self.out_write = os.pipe()

    def say(self, word):
        os.write(self.to_write, f"{word}\n".encode())
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.out_read], [], [], END_S)
            assert ready, "the program does not answer"
            line += os.read(self.out_read, 4096)
        return line


@contextlib.contextmanager
def started(pool, lines, value, stderr=None):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "app.py"
        path.write_text(PROGRAM)
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
        image, kept_once, sizes = None, 0, []
        for step in range(40):
            said = lines.say("one")
            image, filled = take_image(life, memory, image)
            sizes.append(filled)
            kept_once += filled < len(image) / 2
            assert lines.say("look") == said
            if step % 4 == 3:  # the next image is whole: the boot program is another one
                life.kill()
                life = bring_back(pool, memory, image, lines.to_read, lines.out_write)
                assert lines.say("look") == said, f"step {step}"
        life.kill()
    assert kept_once > 10, sizes


def main():
    value = seed()
    pool = os.memfd_create("pool")
    os.ftruncate(pool, POOL)
    memory = mmap.mmap(pool, POOL)
    if not keeps_what_is_unchanged(pool, memory):
        print("left out: this kernel does not watch writes (userfaultfd of Linux 6.7)")
        return 77
    began = time.monotonic()
    test_a_device_may_write_unseen(pool, memory)
    test_random_changes_come_back(value, pool, memory)
    assert time.monotonic() - began < END_S * 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
