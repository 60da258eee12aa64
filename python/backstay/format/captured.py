"""Files that were captured as they were written: the table, and their bytes.

The format is in docs/format/files.md.
"""

import bisect
import struct
from dataclasses import dataclass, field

import numpy as np

from . import checksum, records
from .errors import DamagedError, NotFoundError, ShapeError, as_ours

FILES_MAX = 1_000_000
EXTENT = np.dtype([("file_offset", "<u8"), ("bytes", "<u8"), ("object_offset", "<u8")])
_FIXED = struct.Struct("<IIQQqIqI")


@dataclass(frozen=True, eq=False)
class CapturedFile:
    """A file of a version. `read` gives its bytes, holes as zeros."""

    path: bytes  # absolute
    mode: int
    size: int
    placed_ns: int  # when it came to this path
    modified_ns: int
    accessed_ns: int
    extents: np.ndarray = field(repr=False)  # EXTENT, in the order of writing: a later one wins
    owner: str  # "rank 1", "writer 0"
    node: int
    _order: tuple = field(repr=False)  # of two with one path the greater counts
    _source: object = field(repr=False)  # (files of the node, entry of the object)

    def pieces(self) -> list[tuple[int, int, int]]:
        """Where the file has bytes, sorted, apart.

        Each piece is (offset in the file, length, offset in the object).
        """
        return resolve(self.extents)

    def read(self, begin: int = 0, end: int | None = None) -> np.ndarray:
        """Bytes [begin, end) as a read-only u1 array; to the file's end without `end`."""
        end = self.size if end is None else min(end, self.size)
        if not 0 <= begin <= end:
            raise ShapeError(f"{self.path!r}: no bytes {begin} to {end} in a file of {self.size}")
        with as_ours(repr(self.path)):
            try:
                out = np.zeros(end - begin, np.uint8)
            except ValueError as error:
                raise ShapeError(
                    f"{self.path!r}: numpy holds no {end - begin} bytes: {error}"
                ) from None
            for at, length, source in self.pieces():
                first, last = max(at, begin), min(at + length, end)
                if first < last:
                    out[first - begin : last - begin] = self._bytes(
                        source + first - at, source + last - at
                    )
        out.flags.writeable = False
        return out

    def _bytes(self, begin: int, end: int) -> np.ndarray:
        files, entry = self._source
        return files.read(entry, begin, end)

    def blocks(self, longest: int = 16 << 20):
        """(offset, bytes) of what the file has besides holes, each at most so long.

        So a file may be larger than memory.
        """
        for at, length, source in self.pieces():
            for done in range(0, length, longest):
                more = min(longest, length - done)
                with as_ours(repr(self.path)):
                    yield at + done, self._bytes(source + done, source + done + more)


def resolve(extents: np.ndarray) -> list[tuple[int, int, int]]:
    """What extents that overlap mean: pieces apart, sorted.

    The last extent first, each gets what is still free.
    """
    begins: list[int] = []
    taken: list[tuple[int, int, int]] = []  # begin, end, offset in the object less begin
    for at, length, source in reversed(extents.tolist()):
        end, shift = at + length, source - at
        index = max(bisect.bisect_right(begins, at) - 1, 0)
        while at < end:
            if index < len(taken) and taken[index][1] <= at:
                index += 1
            elif index < len(taken) and taken[index][0] <= at:
                at = taken[index][1]
            else:
                stop = min(end, taken[index][0]) if index < len(taken) else end
                begins.insert(index, at)
                taken.insert(index, (at, stop, shift))
                at = stop
    return [(begin, end - begin, begin + shift) for begin, end, shift in taken]


def files_of(files, entry, folder: str) -> list[CapturedFile]:
    """The files of an object of kind files. `files`: of the node whose manifest has the entry."""
    number, of_rank = int(entry["number"]), int(entry["owner"]) == records.RANK
    owner = f"{'rank' if of_rank else 'writer'} {number}"
    what, size = f"{folder}: files of {owner}", int(entry["bytes"])
    if size < records.FOOTER_BYTES:
        raise DamagedError(f"{what}: the object is too short to have a footer")
    with as_ours(what):
        last = files.read(entry, size - records.FOOTER_BYTES, size).tobytes()
        offset, length, table_sum, count = records.footer(last, size, what, records.FILES)
        data = files.read(entry, offset, offset + length).tobytes()
    if not checksum.matches(data, table_sum):
        raise DamagedError(f"{what}: checksum of the table does not match")
    found: list[CapturedFile] = []
    at = 0
    try:
        for _ in range(count):
            place = (owner, files.manifest.node), (files, entry)
            one, at = _record(data, at, offset, what, place)
            if found and found[-1].path >= one.path:
                raise DamagedError(f"{what}: {one.path!r} is there twice, or out of order")
            found.append(one)
    except struct.error as error:
        raise DamagedError(f"{what}: a record of the table is malformed ({error})") from None
    if at != len(data):
        raise DamagedError(f"{what}: the table is longer than its records")
    return found


def _record(data: bytes, at: int, payload_end: int, what: str, place) -> tuple[CapturedFile, int]:
    (owner, node), source = place
    (length,) = struct.unpack_from("<H", data, at)
    path = data[at + 2 : at + 2 + length]
    at += 2 + length
    mode, count, size, placed, modified, modified_ns, accessed, accessed_ns = _FIXED.unpack_from(
        data, at
    )
    at += _FIXED.size
    here = f"{what}: {path!r}"
    if not _good_path(path, length):
        raise DamagedError(f"{here}: the path is not valid")
    if mode > 0o7777 or max(modified_ns, accessed_ns) > 999_999_999:
        raise DamagedError(f"{here}: mode or times")
    if count > (len(data) - at) // EXTENT.itemsize:
        raise DamagedError(f"{here}: number of extents")
    extents = np.frombuffer(data, EXTENT, count, at)
    if not (
        _inside(extents, "file_offset", size) and _inside(extents, "object_offset", payload_end)
    ):
        raise DamagedError(f"{here}: an extent outside of the file or the payload")
    entry = source[1]
    order = (placed, node, int(entry["owner"]), int(entry["number"]))
    times = (placed, modified * 10**9 + modified_ns, accessed * 10**9 + accessed_ns)
    one = CapturedFile(path, mode, size, *times, extents, owner, node, order, source)
    return one, at + EXTENT.itemsize * count


def _inside(extents: np.ndarray, offset: str, end: int) -> bool:
    lengths, limit = extents["bytes"], np.uint64(end)
    fits = (lengths > 0) & (lengths <= limit)
    return bool(np.all(fits)) and bool(np.all(extents[offset] <= limit - lengths))


def _good_path(path: bytes, length: int) -> bool:
    if len(path) != length or length > 4095 or not path.startswith(b"/") or b"\0" in path:
        return False
    return all(name not in (b"", b".", b"..") and len(name) <= 255 for name in path[1:].split(b"/"))


def latest(found: list[CapturedFile]) -> dict[bytes, CapturedFile]:
    """By path, sorted. Where several objects name one, the file that came to the path last."""
    by_path: dict[bytes, CapturedFile] = {}
    for one in sorted(found, key=lambda file: file._order):
        by_path[one.path] = one
    return dict(sorted(by_path.items()))


def named(files: dict[bytes, CapturedFile], path, what: str) -> CapturedFile:
    wanted = path if isinstance(path, bytes) else str(path).encode("utf-8", "surrogateescape")
    if wanted not in files:
        raise NotFoundError(
            f"{what} has no captured file '{wanted.decode('utf-8', 'backslashreplace')}'"
        )
    return files[wanted]
