"""A test that plays the companion (src/capture/image/format/requests.h). Standard library only."""

import array
import mmap
import os
import select
import socket
import struct
import subprocess

from booted import BOOT, END_S

CHUNK = 256 << 10
POOL = 256 << 20
REQUEST = struct.Struct("<II QQQ II 1024s")
ANSWER = struct.Struct("<II QQ 128Q QQQQQQ 1024s")
POOL_ASK, CUT, FILL, RESUME, TABLE, TAKE, SETTLE, KEPT, SNAPSHOT, BASE, GO = range(1, 12)


class No(Exception):
    """What was asked is refused; the number of the refusal, and why."""


def answer_of(line):
    packet = line.recv(ANSWER.size)
    if not packet:
        raise EOFError
    answer = ANSWER.unpack(packet)
    if answer[0] != 0:
        raise No(answer[0], answer[-1].split(b"\0")[0].decode())
    return {"process": answer[1], "bytes": answer[2], "kept_bytes": answer[3],
            "kept": list(zip(answer[4:132:2], answer[5:132:2], strict=True)),
            "stopped_ns": answer[135], "contents": answer[136],
            "why": answer[-1].split(b"\0")[0].decode()}


def tell(line, kind, at=0, bytes_=0, object_=0, watches=0, keeps=0, descriptor=None):
    packet = REQUEST.pack(kind, 0, at, bytes_, object_, watches, keeps, b"")
    rights = []
    if descriptor is not None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    line.sendmsg([packet], rights)


def ask(line, kind, **words):
    tell(line, kind, **words)
    return answer_of(line)


def new_pool():
    pool = os.memfd_create("pool")
    os.ftruncate(pool, POOL)
    return pool, mmap.mmap(pool, POOL)


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

    def ask(self, kind, **words):
        return ask(self.ours, kind, **words)

    def tell(self, kind):
        tell(self.ours, kind)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.ours.close()


class Snapshot:
    """A copy of a program that stands still in a cut."""

    def __init__(self, life):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(60)
        with theirs:
            self.process = life.ask(SNAPSHOT, descriptor=theirs.fileno())["process"]
        try:
            answer_of(self.ours)
        except (No, EOFError):
            self.end()
            raise

    def ask(self, kind, **words):
        return ask(self.ours, kind, **words)

    def end(self):
        """Its exit status, after the line to it was closed."""
        self.ours.close()
        return os.waitpid(self.process, 0)[1]


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
    image, filled = read_image(life, begun, memory, before)
    life.ask(RESUME)
    return image, filled


def read_image(life, begun, memory, before=None):
    """Of a program in a cut, or of its snapshot."""
    image = bytearray()
    for offset, size in kept_chunks(life, begun["kept_bytes"]):
        image += before[offset : offset + size]
    filled = begun["bytes"] - len(image)
    for at in range(0, filled, CHUNK):
        size = min(CHUNK, filled - at)
        life.ask(FILL, at=0, bytes_=size)
        image += memory[:size]
    return image, filled


def watch_from_now(life, image):
    """Whether the next image may keep chunks of this one."""
    chunks = b"".join(struct.pack("<QQ", at, min(CHUNK, len(image) - at))
                      for at in range(0, len(image), CHUNK))
    memory = os.memfd_create("chunks")
    os.write(memory, chunks)
    watched = life.ask(BASE, bytes_=len(chunks), descriptor=memory)["bytes"]
    os.close(memory)
    return watched == 1


def bring_back(pool, memory, image, stdin, stdout, watched=False, goes_on=True):
    """`goes_on`: else it is as it was, and waits for GO."""
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
    if watched:
        assert watch_from_now(life, image), "the writes are not watched"
    life.missing = life.ask(SETTLE)["why"]
    if goes_on:
        life.tell(GO)
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
