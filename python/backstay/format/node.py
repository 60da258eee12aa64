"""The files of one node: manifest and segments, also those of needed versions.

Bytes of an object are copied and then verified. Copied first, because an agent that runs meanwhile
writes a newer version into the very file of a version that it has removed (docs/format, "Reading a
version"): what was verified in place could become other bytes.
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
        self._check = check
        self.advice = ""  # ends what is said of damage
        try:
            with (
                as_ours(self._manifest_path),
                os.fdopen(open_file(self._manifest_path), "rb") as file,
            ):
                self.manifest = self._read_manifest(file)
        except NotFoundError:
            self.require_version()
            raise IncompleteError(f"{self._manifest_path}: missing") from None
        if self.manifest.node != node:
            raise DamagedError(f"{self._manifest_path}: belongs to node {self.manifest.node}")
        self._keys = records.keys(self.manifest.objects)
        self._segments: dict[tuple[int, int], Segment] = {}
        self._last: tuple[int, np.ndarray] | None = None  # the chunk copied last, and its index

    def _read_manifest(self, file) -> records.Manifest:
        """Its length is checked before memory is taken for it."""
        path = self._manifest_path
        head = file.read(records.MANIFEST_HEADER_BYTES)
        length = records.manifest_bytes(head, path)
        if os.fstat(file.fileno()).st_size != length:
            raise DamagedError(f"{path}: its length does not fit its number of entries")
        return records.manifest(head + file.read(length - len(head)), path)

    def _segments_used(self) -> list[tuple[int, int]]:
        """This node's own one, and those of needed versions: (index of the need, node)."""
        places = np.unique(self.manifest.chunks[["need", "node"]]).tolist()
        return sorted({(0, 0), *places})

    def _segment(self, need: int = 0, node: int = 0) -> "Segment":
        if (need, node) not in self._segments:
            self._segments[need, node] = self._place_of(need, node)
        return self._segments[need, node]

    def _place_of(self, need: int, node: int) -> "Segment":
        m = self.manifest
        if need == 0:
            identity = (m.job, m.version, m.run, m.node)
            return Segment(self, self._folder, identity, m.segment_bytes, None)
        chunks = m.chunks[(m.chunks["need"] == need) & (m.chunks["node"] == node)]
        end = int((chunks["segment_offset"] + chunks["length"]).max())
        version, run = (int(value) for value in m.needs[need - 1].tolist())
        folder = os.path.join(os.path.dirname(self._folder), f"v{version:016d}")
        identity = (m.job, version, run, node)
        return Segment(self, folder, identity, end, f"{self._folder} needs version {version}: ")

    def look_at_segments(self) -> None:
        """Raises what is wrong with the segments' names, lengths and headers; no chunk is read."""
        for place in self._segments_used():
            self._segment(*place).look()

    def require_version(self) -> None:
        if not any(name.startswith("commit.") for name in _names_in(self._folder)):
            raise NotFoundError(f"{self._folder}: the version was removed while it was read")

    def _copy(self, index: int, into: np.ndarray) -> None:
        """A whole chunk into `into`, verified there."""
        chunk = self.manifest.chunks[index]
        segment = self._segment(int(chunk["need"]), int(chunk["node"]))
        begin, length = int(chunk["segment_offset"]), int(chunk["length"])
        place = f"bytes {begin} to {begin + length} ({self._owner_of(chunk)})"
        got = segment.read(into, begin)
        if got != length:
            segment.wrong(f"ends before {place}")
        if self._check and not checksum.matches(into, int(chunk["checksum"])):
            segment.wrong(f"{place} do not match their checksum")

    def _owner_of(self, chunk) -> str:
        entry = self.manifest.objects[int(chunk["object"])]
        return f"{'rank' if int(entry['owner']) == records.RANK else 'writer'} {entry['number']}"

    def _payload(self, index: int) -> np.ndarray:
        if self._last is None or self._last[0] != index:
            copy = np.empty(int(self.manifest.chunks[index]["length"]), np.uint8)
            self._copy(index, copy)
            copy.flags.writeable = False
            self._last = (index, copy)
        return self._last[1]

    def entry(self, rank: int):
        """The manifest's entry of a rank's regions, or None."""
        wanted = rank << 16 | records.REGIONS
        at = int(np.searchsorted(self._keys, np.uint64(wanted)))
        found = at < len(self._keys) and self._keys[at] == wanted
        return self.manifest.objects[at] if found else None

    def of_kind(self, kind: int) -> np.ndarray:
        """The manifest's entries of one kind of object."""
        return self.manifest.objects[self.manifest.objects["kind"] == kind]

    def ranks(self) -> list[int]:
        """Whose regions are here."""
        return self.of_kind(records.REGIONS)["number"].tolist()

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
            for place in self._segments_used():
                self._segment(*place).check_again()
            return sum(len(self._payload(index)) for index in range(len(self.manifest.chunks)))
        finally:
            self._check = before


class ObjectBytes:
    """The bytes of an object; a slice reads them."""

    def __init__(self, files: NodeFiles, entry):
        self._files, self._entry = files, entry

    def __len__(self) -> int:
        return int(self._entry["bytes"])

    def __getitem__(self, place: slice) -> np.ndarray:
        begin, end, _ = place.indices(len(self))
        return self._files.read(self._entry, begin, max(begin, end))


class Segment:
    """A segment's file; its header and length are checked when it is opened.

    `need` begins what is said of one that belongs to an older version, and tells the two apart:
    what is wrong with it is damage of the version that needs it.
    """

    def __init__(
        self, files: NodeFiles, folder: str, identity: tuple, least: int, need: str | None
    ):
        self._files, self._identity, self._least, self._need = files, identity, least, need
        self._path = os.path.join(folder, f"node-{identity[3]:07d}.segment")
        self._descriptor: int | None = None

    def read(self, into: np.ndarray, offset: int) -> int:
        """Fills `into`; returns less only where the file ends."""
        with as_ours(self._path):
            return _read_exactly(self._opened(), into, offset)

    def look(self) -> None:
        with as_ours(self._path):
            descriptor = self._open()
            try:
                self._check(descriptor)
            finally:
                os.close(descriptor)

    def check_again(self) -> None:
        with as_ours(self._path):
            self._check(self._opened())

    def wrong(self, why: str) -> None:
        self._files.require_version()
        raise DamagedError(f"{self._need or ''}{self._path}: {why}{self._files.advice}")

    def _opened(self) -> int:
        if self._descriptor is None:
            descriptor = self._open()
            weakref.finalize(self, os.close, descriptor)
            self._check(descriptor)
            self._descriptor = descriptor
        return self._descriptor

    def _open(self) -> int:
        try:
            return open_file(self._path)
        except FileNotFoundError:
            if self._need is not None:
                self.wrong("missing")
            self._files.require_version()
            raise IncompleteError(f"{self._path}: missing, but its manifest is here") from None

    def _check(self, descriptor: int) -> None:
        if os.fstat(descriptor).st_size < self._least:
            self.wrong(f"shorter than the {self._least} bytes that count")
        try:
            head = records.segment_header(
                os.pread(descriptor, records.SEGMENT_HEADER_BYTES, 0), self._path
            )
        except FormatError as error:
            self._files.require_version()
            if self._need is None:
                raise
            raise DamagedError(f"{self._need}{error}") from None
        if (head["job"], head["version"], head["run"], head["node"]) != self._identity:
            self.wrong(
                "belongs to another version than its manifest"
                if self._need is None
                else "is another version"
            )


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
