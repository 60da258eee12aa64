"""A process image as an ELF core file, which debuggers read (System V ABI, gdb's corelow.c).

`gdb PROGRAM CORE` shows the threads, stacks and data as they were when the version was saved.
"""

import struct

from .errors import NotFoundError, ShapeError
from .image import PAGE_BYTES, Image

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, System V
_CORE, _X86_64, _NOTE, _LOAD = 4, 62, 4, 1
_SEGMENTS_MAX = 0xFFFE
_PROTECTIONS = {1: 4, 2: 2, 4: 1}  # those of an image -> PF_R, PF_W, PF_X

_PRSTATUS, _FPREGSET, _PRPSINFO, _AUXV, _XSTATE, _FILE = 1, 2, 3, 6, 0x202, 0x46494C45
_PRIVATE, _SHARED_MEMORY, _VDSO_DATA = 1, 4, 6
# As docs/format/image.md, section 5, has them; and as the kernel's struct user_regs_struct does.
_SAVED = "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip flags".split()
_USER_REGISTERS = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs flags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()
_SELECTORS = {"cs": 0x33, "ss": 0x2B}  # of a 64-bit process of Linux
_NO_SYSTEM_CALL = 2**64 - 1
_FPSTATE_POINTER = 224  # in struct ucontext
_FXSAVE_BYTES = 512
# What the frame holds of the extended state, and its bytes (the kernel's struct _fpx_sw_bytes).
_FRAME_FEATURES, _FRAME_FEATURES_AT = struct.Struct("<QI"), 472
_XCR0_AT = 464  # in the extended state of a core file


def write_core(image: Image, file) -> None:
    """Writes to a seekable binary file. Zeros are holes; pages of files that were not changed are
    left out, with the file's name. Raises ShapeError, and what reading the image raises."""
    pieces = _pieces(image)
    if len(pieces) >= _SEGMENTS_MAX:
        raise ShapeError(f"image: {len(pieces)} pieces of memory, more than an ELF file can list")
    notes = _notes(image)
    notes_at = _HEADER.size + _SEGMENT.size * (1 + len(pieces))
    headers = [_SEGMENT.pack(_NOTE, 0, notes_at, 0, 0, len(notes), 0, 4)]
    at, loads = _rounded(notes_at + len(notes)), []
    for area, start, end, kept in pieces:
        size = end - start
        headers.append(
            _SEGMENT.pack(_LOAD, _protection(area), at, start, 0, size if kept else 0, size,
                          PAGE_BYTES))  # fmt: skip
        if kept:
            loads.append((start, end, at))
            at += size
    file.write(
        _HEADER.pack(_IDENT, _CORE, _X86_64, 1, 0, _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size,
                     len(headers), 0, 0, 0))  # fmt: skip
    file.write(b"".join(headers) + notes)
    _write_pages(image, loads, file)
    file.truncate(at)


def _rounded(at: int) -> int:
    return (at + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES


def _protection(area) -> int:
    return sum(ours for theirs, ours in _PROTECTIONS.items() if int(area["protection"]) & theirs)


def _runs(image: Image):
    """(first address, end, offset in the object) of each, in the order of addresses."""
    for run in image.runs:
        start = int(run["address"])
        yield start, start + int(run["pages"]) * PAGE_BYTES, int(run["offset"])


def _pieces(image: Image) -> list[tuple]:
    """(area, start, end, whether the core has its bytes).

    An area whose absent pages are zeros is one piece; of a file's, the pages that it holds.
    """
    runs, pieces, at = list(_runs(image)), [], 0
    for area in image.areas:
        start, end = int(area["start"]), int(area["end"])
        while at < len(runs) and runs[at][1] <= start:
            at += 1
        if int(area["kind"]) in (_PRIVATE, _SHARED_MEMORY):
            pieces.append((area, start, end, True))
            continue
        while at < len(runs) and runs[at][0] < end:
            if start < runs[at][0]:
                pieces.append((area, start, runs[at][0], False))
            pieces.append((area, runs[at][0], runs[at][1], True))
            start, at = runs[at][1], at + 1
        if start < end and int(area["kind"]) != _VDSO_DATA:
            pieces.append((area, start, end, False))
    return pieces


def _write_pages(image: Image, loads: list[tuple], file, longest: int = 16 << 20) -> None:
    at = 0
    for start, end, offset in _runs(image):
        while loads[at][1] <= start:
            at += 1
        for done in range(0, end - start, longest):
            more = min(longest, end - start - done)
            file.seek(loads[at][2] + start + done - loads[at][0])
            file.write(image.data[offset + done : offset + done + more])


def _note(kind: int, data: bytes, name: bytes = b"CORE") -> bytes:
    def padded(raw):
        return raw + bytes(-len(raw) % 4)

    head = struct.pack("<III", len(name) + 1, len(data), kind)
    return head + padded(name + b"\0") + padded(data)


def _notes(image: Image) -> bytes:
    threads = sorted(image.threads, key=lambda thread: not int(thread["flags"]) & 1)
    out = []
    for position, thread in enumerate(threads):
        out.append(_note(_PRSTATUS, _status(image, thread)))
        if position == 0:
            out += [_note(_PRPSINFO, _process(image)), _note(_AUXV, _auxv(image)),
                    _note(_FILE, _files(image))]  # fmt: skip
        out += _extended(image, thread)
    return b"".join(out)


def _status(image: Image, thread) -> bytes:
    """struct elf_prstatus."""
    saved = dict(zip(_SAVED, thread["registers"].tolist()))
    saved |= _SELECTORS | {"orig_rax": _NO_SYSTEM_CALL, "fs_base": int(thread["fs"]),
                           "gs_base": int(thread["gs"])}  # fmt: skip
    registers = [saved.get(name, 0) for name in _USER_REGISTERS]
    ids = struct.pack("<4i", int(thread["tid"]), 0, int(image.identity["pid"]), 0)
    signals = struct.pack("<QQ", int(thread["pending"]), int(thread["mask"]))
    return bytes(16) + signals + ids + bytes(64) + struct.pack("<27Q", *registers) + bytes(8)


def _process(image: Image) -> bytes:
    """struct elf_prpsinfo."""
    who = image.identity
    arguments = b""
    if who["arg_end"] > who["arg_start"]:
        arguments = image.memory(int(who["arg_start"]), int(who["arg_end"] - who["arg_start"]))
    name = image.text(int(who["program"])).rsplit("/", 1)[-1].encode(errors="surrogateescape")
    return struct.pack(
        "<4bxxxxQIIiiii16s80s", 0, ord("S"), 0, 0, 0, int(who["uid"]), int(who["gid"]),
        int(who["pid"]), 0, 0, 0, name[:15], arguments.rstrip(b"\0").replace(b"\0", b" ")[:79]
    )  # fmt: skip


def _auxv(image: Image) -> bytes:
    return image.memory(int(image.identity["auxv_start"]), int(image.identity["auxv_bytes"]))


def _files(image: Image) -> bytes:
    """Which file is mapped where, so that a debugger can read the pages that are not here."""
    mapped = [area for area in image.areas if int(area["file"]) < len(image.files)]
    words = [len(mapped), PAGE_BYTES]
    names = b""
    for area in mapped:
        words += [int(area["start"]), int(area["end"]), int(area["offset"]) // PAGE_BYTES]
        path = image.text(int(image.files[int(area["file"])]["path"]))
        names += path.encode(errors="surrogateescape") + b"\0"
    return struct.pack(f"<{len(words)}Q", *words) + names


def _extended(image: Image, thread) -> list[bytes]:
    """Vector registers, out of the frame of the signal that stopped the thread."""
    try:
        pointer = int.from_bytes(image.memory(int(thread["frame"]) + _FPSTATE_POINTER, 8), "little")
        plain = bytearray(image.memory(pointer, _FXSAVE_BYTES))
        features, size = _FRAME_FEATURES.unpack_from(plain, _FRAME_FEATURES_AT)
        state = bytearray(image.memory(pointer, max(size, _FXSAVE_BYTES)))
    except NotFoundError:
        return []  # a core file without vector registers
    state[_XCR0_AT : _XCR0_AT + 8] = features.to_bytes(8, "little")
    return [_note(_FPREGSET, bytes(plain)), _note(_XSTATE, bytes(state), b"LINUX")]
