"""Bytes to values for every record of docs/format. No I/O.

The order of a reader: magic, format number, checksum, and only then lengths and counts. Checks that
need no checksum are made in any case.
"""

import math
import re
import struct
from dataclasses import dataclass

import numpy as np

from . import checksum
from .errors import DamagedError, UnsupportedError

FORMAT = 2
ALIGNMENT = 4096
SEGMENT_HEADER_BYTES = 4096
FOOTER_BYTES = 64
COMMIT_BYTES = 512
MANIFEST_HEADER_BYTES = 192
MANIFEST_BYTES_MAX = 4 << 30
LEVELS = {2: "local", 3: "protected", 4: "durable"}

NEEDS_MAX = 20
RANK, WRITER = 0, 1  # kinds of owners
REGIONS, FILES, IMAGE, CALLS = 1, 2, 3, 4  # kinds of objects

NEED_ENTRY = np.dtype([("version", "<u8"), ("run", "<u8")])
OBJECT_ENTRY = np.dtype(
    [
        ("number", "<u4"),
        ("owner", "<u2"),
        ("kind", "<u2"),
        ("bytes", "<u8"),
        ("first_chunk", "<u8"),
        ("chunks", "<u8"),
    ]
)
CHUNK_ENTRY = np.dtype(
    [
        ("object", "<u4"),
        ("length", "<u4"),
        ("object_offset", "<u8"),
        ("segment_offset", "<u8"),
        ("checksum", "<u8"),
        ("need", "<u4"),  # 0: in this version's own segment; n: in that of the n-th need
        ("node", "<u4"),
    ]
)
# Need and node of a chunk in one number.
_PLACE = np.dtype({"names": ["place"], "formats": ["<u8"], "offsets": [32], "itemsize": 40})
# The type number is the index; opaque bytes are read as unsigned.
DTYPES = [None] + [
    np.dtype(code) for code in "u1 i1 <i2 <i4 <i8 u1 <u2 <u4 <u8 <f4 <f8 <c8 <c16".split()
]
KINDS = {1: "array", 2: "file", 4: "streams"}  # of regions
NOTE = 3
NOTES_MAX = 16

_JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True)
class Commit:
    job: str
    level: str
    version: int
    run: int
    nodes: int
    ranks: int
    payload_bytes: int
    manifests_sum: int
    captured_ns: int
    committed_ns: int
    needs: tuple[tuple[int, int], ...]  # (version, run)


@dataclass(frozen=True)
class Manifest:
    job: str
    node: int
    version: int
    run: int
    segment_bytes: int
    nodes: int
    ranks: int
    chunk_bytes_max: int
    captured_ns: int
    digest: int
    needs: np.ndarray  # NEED_ENTRY
    objects: np.ndarray  # OBJECT_ENTRY
    chunks: np.ndarray  # CHUNK_ENTRY


@dataclass(frozen=True)
class Region:
    """A named piece of a rank's object."""

    name: str
    kind: str  # "array" or "file"
    dtype: np.dtype
    shape: tuple[int, ...]
    bytes: int
    offset: int  # of the payload in the object
    global_shape: tuple[int, ...] | None = None
    global_offset: tuple[int, ...] | None = None
    mode: int = 0  # permission bits of a file


def _require(holds: bool, what: str, why: str) -> None:
    if not holds:
        raise DamagedError(f"{what}: {why}")


def _check_head(data: bytes, least: int, magic: bytes, what: str) -> None:
    _require(len(data) >= least, what, f"only {len(data)} bytes long")
    _require(bytes(data[:8]) == magic, what, f"does not begin with {magic.decode()}")
    (number,) = struct.unpack_from("<I", data, 8)
    if number == 1:
        raise UnsupportedError(
            f"{what}: has format 1, which release 0.1.0 wrote while it was in development; "
            f"this reader knows format {FORMAT} alone"
        )
    if number != FORMAT:
        raise UnsupportedError(f"{what}: has format {number}, this reader knows format {FORMAT}")


def _check_sum(data: bytes, at: int, what: str, begin: int = 0) -> None:
    (expected,) = struct.unpack_from("<Q", data, at)
    _require(checksum.matches(data[begin:at], expected), what, "checksum does not match")


def _job(field: bytes, what: str) -> str:
    name = field.rstrip(b"\0")
    try:
        text = name.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    _require(_JOB.match(text) is not None, what, "holds no valid job name")
    return text


def segment_header(data: bytes, what: str) -> dict:
    """The fields of a segment's first block."""
    _check_head(data, SEGMENT_HEADER_BYTES, b"BKSTSEG1", what)
    _check_sum(data, 152, what)
    node, version, run, created_ns, alignment, zeros = struct.unpack_from("<IQQQII", data, 12)
    _require(alignment == ALIGNMENT, what, "unknown alignment")
    _require(version > 0, what, "version 0")
    zero = zeros == 0 and not any(data[160:SEGMENT_HEADER_BYTES])
    _require(zero, what, "bytes that must be zero are not")
    job = _job(data[48:152], what)
    return {"job": job, "node": node, "version": version, "run": run, "created_ns": created_ns}


def commit(data: bytes, what: str) -> Commit:
    _check_head(data, COMMIT_BYTES, b"BKSTCMT1", what)
    _require(len(data) == COMMIT_BYTES, what, f"is not {COMMIT_BYTES} bytes long")
    _check_sum(data, 504, what)
    level, version, run, nodes, ranks, payload, digests, captured, committed = struct.unpack_from(
        "<IQQIIQQQQ", data, 12
    )
    _require(level in LEVELS, what, "unknown level")
    _require(version > 0 and nodes > 0 and ranks > 0, what, "version, nodes or ranks are 0")
    needs = _commit_needs(data, version, what)
    job = _job(data[72:176], what)
    return Commit(
        job, LEVELS[level], version, run, nodes, ranks, payload, digests, captured, committed, needs
    )


def _commit_needs(data: bytes, version: int, what: str) -> tuple[tuple[int, int], ...]:
    count, zeros = struct.unpack_from("<II", data, 176)
    _require(count <= NEEDS_MAX, what, "number of needed versions")
    end = 184 + NEED_ENTRY.itemsize * count
    _require(zeros == 0 and not any(data[end:504]), what, "bytes that must be zero are not")
    needs = np.frombuffer(data, NEED_ENTRY, count, 184)
    _check_needs(needs, version, what)
    return tuple((int(need["version"]), int(need["run"])) for need in needs)


def _check_needs(needs: np.ndarray, version: int, what: str) -> None:
    versions = needs["version"]
    ascending = bool(np.all(versions[1:] > versions[:-1])) and bool(np.all(versions > 0))
    _require(ascending, what, "needed versions are not sorted, or one is there twice")
    _require(bool(np.all(versions < version)), what, "needs a version that is not older")


def manifest_bytes(head: bytes, what: str) -> int:
    """How long the file is, by its header."""
    _check_head(head, MANIFEST_HEADER_BYTES, b"BKSTMAN1", what)
    _check_sum(head, 184, what)
    objects, _, chunks = struct.unpack_from("<IIQ", head, 40)
    needs, zeros = struct.unpack_from("<II", head, 176)
    _require(zeros == 0, what, "bytes that must be zero are not")
    _require(needs <= NEEDS_MAX, what, "number of needed versions")
    length = MANIFEST_HEADER_BYTES + NEED_ENTRY.itemsize * needs + 8
    length += OBJECT_ENTRY.itemsize * objects + CHUNK_ENTRY.itemsize * chunks
    _require(length <= MANIFEST_BYTES_MAX, what, "its number of entries is larger than any")
    return length


def manifest(data: bytes, what: str) -> Manifest:
    length = manifest_bytes(data, what)
    node, version, run, segment_bytes, objects, nodes, chunks, ranks, chunk_max = (
        struct.unpack_from("<IQQQIIQII", data, 12)
    )
    job = _job(data[64:168], what)
    captured_ns, needs = struct.unpack_from("<QI", data, 168)
    listed = MANIFEST_HEADER_BYTES + NEED_ENTRY.itemsize * needs
    entries = listed + OBJECT_ENTRY.itemsize * objects
    end = entries + CHUNK_ENTRY.itemsize * chunks
    _require(len(data) == length, what, "its length does not fit its number of entries")
    _check_sum(data, end, what)
    (digest,) = struct.unpack_from("<Q", data, end)
    result = Manifest(
        job,
        node,
        version,
        run,
        segment_bytes,
        nodes,
        ranks,
        chunk_max,
        captured_ns,
        digest,
        np.frombuffer(data, NEED_ENTRY, needs, MANIFEST_HEADER_BYTES),
        np.frombuffer(data, OBJECT_ENTRY, objects, listed),
        np.frombuffer(data, CHUNK_ENTRY, chunks, entries),
    )
    _check_manifest(result, what)
    return result


def _check_manifest(m: Manifest, what: str) -> None:
    _require(m.version > 0 and m.node < m.nodes, what, "numbers of the run")
    whole = m.segment_bytes >= SEGMENT_HEADER_BYTES and m.segment_bytes % ALIGNMENT == 0
    _require(whole, what, "length of the segment")
    _check_needs(m.needs, m.version, what)
    _check_owners(m, what)
    _check_objects(m, what)
    _check_chunks(m, what)


def keys(objects: np.ndarray) -> np.ndarray:
    """Owner kind, number and kind in one number: the order of a manifest."""
    owner, number, kind = (
        objects[field].astype(np.uint64) for field in ("owner", "number", "kind")
    )
    return owner << np.uint64(48) | number << np.uint64(16) | kind


def _check_owners(m: Manifest, what: str) -> None:
    order = keys(m.objects)
    ascending = bool(np.all(order[1:] > order[:-1]))
    _require(ascending, what, "objects are not sorted, or one is there twice")
    owner, kind, number = m.objects["owner"], m.objects["kind"], m.objects["number"]
    _require(bool(np.all(owner <= WRITER)), what, "unknown kind of an owner")
    _require(bool(np.all((kind >= REGIONS) & (kind <= CALLS))), what, "unknown kind of an object")
    known = bool(np.all((owner != RANK) | (number < m.ranks)))
    _require(known, what, "an object of a rank that the run does not have")
    _require(not np.any((owner == WRITER) & (kind == REGIONS)), what, "regions of a writer")


def _check_objects(m: Manifest, what: str) -> None:
    next_chunk = 0
    for index, entry in enumerate(m.objects):
        first, count = int(entry["first_chunk"]), int(entry["chunks"])
        fits = first == next_chunk and count <= len(m.chunks) - next_chunk
        _require(fits, what, "range of chunks")
        next_chunk += count
        mine = m.chunks[first:next_chunk]
        _require(bool(np.all(mine["object"] == index)), what, "chunks of another object")
        # Fewer than 2^32 bytes each and no more than the file could list: the sum cannot wrap.
        ends = np.cumsum(mine["length"], dtype=np.uint64)
        begins = np.concatenate([np.zeros(1, np.uint64), ends])
        _require(bool(np.all(mine["object_offset"] == begins[:-1])), what, "gap or overlap")
        _require(int(begins[-1]) == int(entry["bytes"]), what, "chunks do not cover the object")
        if entry["kind"] == IMAGE:
            paged = not np.any(mine["object_offset"] % ALIGNMENT)
            _require(paged, what, "a chunk of an image begins within a page")
    _require(next_chunk == len(m.chunks), what, "chunks of no object")


def _check_places(m: Manifest, what: str):
    """Which chunks lie in this version's own segment, as an index."""
    if len(m.needs) == 0:
        elsewhere = np.any(m.chunks.view(_PLACE)["place"])
        _require(not elsewhere, what, "a chunk in a version that is not named")
        return slice(None)
    need, node = m.chunks["need"], m.chunks["node"]
    named = len(np.unique(need[need > 0])) == len(m.needs) and not np.any(need > len(m.needs))
    _require(named, what, "a chunk in a version that is not named, or a need without a chunk")
    _require(not np.any(node[need == 0]), what, "a node where this version's own is meant")
    return need == 0


def _check_chunks(m: Manifest, what: str) -> None:
    here = _check_places(m, what)
    lengths, begins = m.chunks["length"].astype(np.uint64), m.chunks["segment_offset"]
    sizes = bool(np.all((lengths > 0) & (lengths <= m.chunk_bytes_max)))
    _require(sizes, what, "length of a chunk")
    aligned = bool(np.all((begins % ALIGNMENT == 0) & (begins >= SEGMENT_HEADER_BYTES)))
    slots = (lengths + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
    _require(aligned, what, "a slot that is not aligned")
    if len(m.needs) > 0:  # where the segments of other versions end is known to who opens them
        countable = bool(np.all(begins <= 2**64 - ALIGNMENT - slots))
        _require(countable, what, "a slot outside of any segment")
    begins, slots = begins[here], slots[here]
    inside = bool(np.all((slots <= m.segment_bytes) & (begins <= m.segment_bytes - slots)))
    _require(inside, what, "a slot outside of the segment")
    order = np.argsort(begins, kind="stable")
    apart = bool(np.all(begins[order][1:] >= (begins + slots)[order][:-1]))
    _require(apart, what, "two chunks share bytes of the segment")


def footer(
    data: bytes, object_bytes: int, what: str, kind: int = REGIONS
) -> tuple[int, int, int, int]:
    """(offset of the table, its length, its checksum, number of records) of an object's end."""
    _check_head(data, FOOTER_BYTES, b"BKSTOBJ1", what)
    _check_sum(data, 56, what)
    records, offset, length, table_sum = struct.unpack_from("<IQQQ", data, 12)
    _require(not any(data[44:56]), what, "bytes that must be zero are not")
    (said,) = struct.unpack_from("<I", data, 40)
    _require(said == kind, what, "the footer is that of another kind of object")
    _require(records <= 1_000_000 + NOTES_MAX, what, "number of records")
    fits = offset % 64 == 0 and offset + length + FOOTER_BYTES == object_bytes
    _require(fits, what, "the table is not between the payloads and the footer")
    return offset, length, table_sum, records


def table(data: bytes, table_offset: int, table_sum: int, records: int, what: str):
    """The regions of an object, in the order of their payloads, and its notes: key -> text."""
    _require(checksum.matches(data, table_sum), what, "checksum of the table does not match")
    regions, notes, at, expected, seen = [], {}, 0, 0, set()
    try:
        for _ in range(records):
            name, kind, at = _head(data, at, what)
            if kind == NOTE:
                text, at = _text(data, at, f"{what}: text of note '{name}'")
                _require(name not in notes, what, f"note '{name}' occurs twice")
                notes[name] = text
                continue
            region, at = _record(data, at, name, kind, what)
            _require(not notes, what, f"region '{name}' stands behind a note")
            first = region.kind != "streams" or not regions
            _require(first, what, "streams that are not the first region")
            _require(region.offset == expected, what, f"place of region '{region.name}'")
            _require((region.kind, region.name) not in seen, what, f"'{region.name}' occurs twice")
            seen.add((region.kind, region.name))
            expected = (region.offset + region.bytes + 63) // 64 * 64
            regions.append(region)
    except (struct.error, UnicodeDecodeError) as error:
        raise DamagedError(f"{what}: a record of the table is malformed ({error})") from None
    whole = at == len(data) and expected == table_offset
    _require(whole, what, "the table does not fit its payloads")
    _require(len(notes) <= NOTES_MAX, what, "number of notes")
    return regions, notes


def _text(data: bytes, at: int, what: str) -> tuple[str, int]:
    (length,) = struct.unpack_from("<H", data, at)
    raw = bytes(data[at + 2 : at + 2 + length])
    _require(1 <= len(raw) == length <= 200 and 0 not in raw, what, "is not 1 to 200 bytes of text")
    return raw.decode("utf-8"), at + 2 + length


def _head(data: bytes, at: int, what: str) -> tuple[str, int, int]:
    """Name and kind of a region or a note, and where the rest begins."""
    name, at = _text(data, at, f"{what}: name of a region")
    (kind,) = struct.unpack_from("<B", data, at)
    return name, kind, at + 1


def _record(data: bytes, at: int, name: str, kind: int, what: str) -> tuple[Region, int]:
    number, dims, flags, mode, offset, size = struct.unpack_from("<BBBIQQ", data, at)
    at += 23
    here = f"{what}: region '{name}'"
    _require(kind in KINDS and 1 <= number < len(DTYPES), here, "unknown kind or type")
    _require(1 <= dims <= 8 and flags in (0, 1), here, "dimensions or flags")
    shape = struct.unpack_from(f"<{dims}Q", data, at)
    at += 8 * dims
    global_shape = global_offset = None
    if flags & 1:
        global_shape = struct.unpack_from(f"<{dims}Q", data, at)
        global_offset = struct.unpack_from(f"<{dims}Q", data, at + 8 * dims)
        at += 16 * dims
        inside = all(o + s <= g for o, s, g in zip(global_offset, shape, global_shape))
        _require(inside, here, "lies outside of its global array")
        fits = math.prod(global_shape) * DTYPES[number].itemsize < 2**64
        _require(fits, here, "its global array is larger than 64 bits can count")
    filled = math.prod(shape) * DTYPES[number].itemsize == size
    _require(filled, here, "length is not that of its shape")
    plain = number == 1 and dims == 1 and flags == 0
    _require(kind == 1 or plain, here, "a file, or streams, and not a plain row of bytes")
    _require(mode <= (0o7777 if kind == 2 else 0), here, "permission bits")
    _require(kind != 4 or name == "streams", here, "streams that are not named so")
    place = (global_shape, global_offset, mode)
    return Region(name, KINDS[kind], DTYPES[number], shape, size, offset, *place), at
