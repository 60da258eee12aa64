"""The files of one node: manifest and segment. Bytes of an object, copied and then verified.

Copied first, because an agent that runs meanwhile writes a newer version into the very file of a version that it
has removed (docs/format, "Reading a version"): what was verified in place could become other bytes.
"""

import errno
import os
import stat
import weakref

import numpy as np

from . import checksum, records
from .errors import DamagedError, FormatError, IncompleteError, NotFoundError, as_ours


# What open() says of a loop of links, a socket, a device without a driver, a name below a file.
_NO_FILE = {errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENOTDIR}


def open_file(path: str) -> int:
    """A descriptor of a regular file: whatever else stands in its place, a pipe too, is damage.
    FileNotFoundError where there is nothing, or a link that leads nowhere."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        raise DamagedError(f"{path}: is no file ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedError(f"{path}: is no file")
    return descriptor


class NodeFiles:
    def __init__(self, folder: str, node: int, check: bool):
        self._folder = folder
        self._manifest_path = os.path.join(folder, f"node-{node:07d}.manifest")
        self._segment_path = os.path.join(folder, f"node-{node:07d}.segment")
        self._check = check
        self.advice = ""  # ends what is said of damage
        try:
            with as_ours(self._manifest_path), os.fdopen(open_file(self._manifest_path), "rb") as file:
                self.manifest = self._read_manifest(file)
        except NotFoundError:
            self._require_version()
            raise IncompleteError(f"{self._manifest_path}: missing") from None
        if self.manifest.node != node:
            raise DamagedError(f"{self._manifest_path}: belongs to node {self.manifest.node}")
        self._descriptor: int | None = None
        self._last: tuple[int, np.ndarray] | None = None  # the chunk copied last, and its index

    def _read_manifest(self, file) -> records.Manifest:
        """Its length is checked before memory is taken for it."""
        path = self._manifest_path
        head = file.read(records.MANIFEST_HEADER_BYTES)
        length = records.manifest_bytes(head, path)
        if os.fstat(file.fileno()).st_size != length:
            raise DamagedError(f"{path}: its length does not fit its number of entries")
        return records.manifest(head + file.read(length - len(head)), path)

    def _segment(self) -> int:
        """The segment's descriptor; its header and length are checked when it is opened."""
        if self._descriptor is None:
            descriptor = self._open()
            weakref.finalize(self, os.close, descriptor)
            self._check_segment(descriptor)
            self._descriptor = descriptor
        return self._descriptor

    def look_at_segment(self) -> None:
        """Raises what is wrong with the segment's name, length and header; no chunk is read."""
        with as_ours(self._segment_path):
            descriptor = self._open()
            try:
                self._check_segment(descriptor)
            finally:
                os.close(descriptor)

    def _open(self) -> int:
        try:
            return open_file(self._segment_path)
        except FileNotFoundError:
            self._require_version()
            raise IncompleteError(f"{self._segment_path}: missing, but its manifest is here") from None

    def _check_segment(self, descriptor: int) -> None:
        path, m = self._segment_path, self.manifest
        if os.fstat(descriptor).st_size < m.segment_bytes:
            self._wrong(f"shorter than the {m.segment_bytes} bytes that count")
        try:
            head = records.segment_header(os.pread(descriptor, records.SEGMENT_HEADER_BYTES, 0), path)
        except FormatError:
            self._require_version()
            raise
        if (head["job"], head["version"], head["run"], head["node"]) != (m.job, m.version, m.run, m.node):
            self._wrong("belongs to another version than its manifest")

    def _require_version(self) -> None:
        if not any(name.startswith("commit.") for name in _names_in(self._folder)):
            raise NotFoundError(f"{self._folder}: the version was removed while it was read")

    def _wrong(self, why: str) -> None:
        self._require_version()
        raise DamagedError(f"{self._segment_path}: {why}{self.advice}")

    def _copy(self, index: int, into: np.ndarray) -> None:
        """A whole chunk into `into`, verified there."""
        chunk = self.manifest.chunks[index]
        begin, length = int(chunk["segment_offset"]), int(chunk["length"])
        place = f"bytes {begin} to {begin + length} (rank {chunk['rank']})"
        with as_ours(self._segment_path):
            got = _read_exactly(self._segment(), into, begin)
        if got != length:
            self._wrong(f"ends before {place}")
        if self._check and not checksum.matches(into, int(chunk["checksum"])):
            self._wrong(f"{place} do not match their checksum")

    def _payload(self, index: int) -> np.ndarray:
        if self._last is None or self._last[0] != index:
            copy = np.empty(int(self.manifest.chunks[index]["length"]), np.uint8)
            self._copy(index, copy)
            copy.flags.writeable = False
            self._last = (index, copy)
        return self._last[1]

    def entry(self, rank: int):
        """The manifest's entry of a rank, or None."""
        ranks = self.manifest.objects["rank"]
        at = int(np.searchsorted(ranks, rank))
        return self.manifest.objects[at] if at < len(ranks) and ranks[at] == rank else None

    def read(self, entry, begin: int, end: int) -> np.ndarray:
        """Bytes [begin, end) of an object, read-only. MemoryError: the caller knows of what."""
        if begin == end:
            return np.empty(0, np.uint8)
        first, count = int(entry["first_chunk"]), int(entry["chunks"])
        chunks = self.manifest.chunks[first : first + count]
        low = int(np.searchsorted(chunks["object_offset"], begin, side="right")) - 1
        high = int(np.searchsorted(chunks["object_offset"], end, side="left"))
        out = np.empty(end - begin, np.uint8)
        for index in range(low, high):
            at, length = int(chunks["object_offset"][index]), int(chunks["length"][index])
            if begin <= at and at + length <= end:  # straight to its place
                self._copy(first + index, out[at - begin : at - begin + length])
                continue
            source = self._payload(first + index)[max(begin - at, 0) : end - at]
            target = max(at - begin, 0)
            out[target : target + len(source)] = source
        out.flags.writeable = False
        return out

    def verify(self) -> int:
        """Checks every chunk; returns the bytes."""
        before, self._check, self._last = self._check, True, None
        try:
            with as_ours(self._segment_path):
                self._check_segment(self._segment())
                return sum(len(self._payload(index)) for index in range(len(self.manifest.chunks)))
        finally:
            self._check = before


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _read_exactly(descriptor: int, into: np.ndarray, offset: int) -> int:
    """Fills `into`; less only where the file ends."""
    view, done = memoryview(into), 0
    while done < len(view):
        got = os.preadv(descriptor, [view[done:]], offset + done)
        if got == 0:
            break
        done += got
    return done
