"""The streams of a rank: one region of its object, with its index (docs/format/streams.md)."""

import struct
from dataclasses import dataclass

from .errors import DamagedError
from .records import _require, _text

TRAILER_BYTES = 24
STREAMS_MAX = 1_000_000
_MAGIC = b"BKSTSTR1"


@dataclass(frozen=True)
class Stream:
    """A stream's name, its length, and where its pieces lie in the region: (offset, length)."""

    name: str
    bytes: int
    extents: tuple[tuple[int, int], ...]


def trailer(data: bytes, payload_bytes: int, what: str) -> tuple[int, int]:
    """(offset of the index in the payload, number of streams)."""
    _require(len(data) == TRAILER_BYTES, what, "the streams are too short to have an index")
    magic, offset, count, zeros = struct.unpack("<8sQII", data)
    _require(magic == _MAGIC and zeros == 0, what, "the index of streams has no trailer")
    fits = offset <= payload_bytes - TRAILER_BYTES and 1 <= count <= STREAMS_MAX
    _require(fits, what, "place of the index of streams, or their number")
    return offset, count


def index(data: bytes, end: int, count: int, what: str) -> dict[str, Stream]:
    """Name -> stream, in the order in which they were opened; `end`: of all their bytes."""
    found, at = {}, 0
    try:
        for _ in range(count):
            stream, at = _record(data, at, what)
            _require(stream.name not in found, what, f"stream '{stream.name}' is there twice")
            found[stream.name] = stream
    except (struct.error, UnicodeDecodeError) as error:
        raise DamagedError(f"{what}: the index of streams is malformed ({error})") from None
    _require(at == len(data), what, "the index of streams is longer than its records")
    covered = 0
    for offset, size in sorted(extent for stream in found.values() for extent in stream.extents):
        _require(offset == covered, what, "extents of streams overlap, or leave a gap")
        covered += size
    _require(covered == end, what, "extents of streams do not cover the bytes")
    return found


def _record(data: bytes, at: int, what: str) -> tuple[Stream, int]:
    name, at = _text(data, at, f"{what}: name of a stream")
    count, size = struct.unpack_from("<IQ", data, at)
    at += 12
    numbers = struct.unpack_from(f"<{2 * count}Q", data, at)
    extents = tuple(zip(numbers[::2], numbers[1::2]))
    here = f"{what}: stream '{name}'"
    _require(all(length for _, length in extents), here, "an extent without bytes")
    behind = all(a + b < c for (a, b), (c, _) in zip(extents, extents[1:]))
    _require(behind, here, "an extent that does not lie behind the one before it")
    _require(sum(length for _, length in extents) == size, here, "its length")
    return Stream(name, size, extents), at + 16 * count
