"""What one rank saved: its arrays, streams and routed files, as mappings of names to arrays."""

import contextlib
from collections.abc import Mapping

import numpy as np

from . import records, streams
from .errors import DamagedError, NotFoundError, ShapeError, as_ours
from .node import NodeFiles
from .records import Region


@contextlib.contextmanager
def held_by_numpy(name: str, shape: tuple[int, ...]):
    """What numpy says of an array beyond its limits, as an error of ours."""
    try:
        yield
    except (ValueError, OverflowError, MemoryError) as error:
        text = " x ".join(map(str, shape))
        raise ShapeError(
            f"region '{name}' of shape {text} cannot be held by numpy here: {error}"
        ) from None


class RankView(Mapping):
    """The regions of one rank: name -> array. Files and streams are found by their name too, as
    bytes (u1). Where names are the same, the array wins, then the stream; `files` holds the other.
    """

    def __init__(self, files: NodeFiles, rank: int, what: str):
        self._files = files
        self._entry = files.entry(rank)
        self.number = rank
        self.regions: list[Region]
        self.notes: dict[str, str]  # what the object says about itself, such as its "program"
        self.regions, self.notes = self._read_table(f"{what}: rank {rank}")
        self.streams = self._read_streams(f"{what}: rank {rank}")
        self._arrays = {r.name: r for r in self.regions if r.kind == "array"}
        self.files = _Payloads(self, [r for r in self.regions if r.kind == "file"])

    def _read_table(self, what: str) -> tuple[list[Region], dict[str, str]]:
        size = int(self._entry["bytes"])
        if size < records.FOOTER_BYTES:
            raise DamagedError(f"{what}: its object is too short to have a footer")
        with as_ours(what):
            last = self._files.read(self._entry, size - records.FOOTER_BYTES, size).tobytes()
            offset, length, table_sum, count = records.footer(last, size, what)
            data = self._files.read(self._entry, offset, offset + length).tobytes()
            return records.table(data, offset, table_sum, count, what)

    def _read_streams(self, what: str) -> "_Streams":
        """All of them are one region, the first, which is not listed among the others."""
        if not self.regions or self.regions[0].kind != "streams":
            return _Streams(self, 0, {})
        whole = self.regions.pop(0)
        end = whole.offset + whole.bytes
        with as_ours(what):
            begin = max(end - streams.TRAILER_BYTES, whole.offset)
            last = self._files.read(self._entry, begin, end).tobytes()
            offset, count = streams.trailer(last, whole.bytes, what)
            data = self._files.read(self._entry, whole.offset + offset, begin).tobytes()
            return _Streams(self, whole.offset, streams.index(data, offset, count, what))

    def bytes_at(self, extents, size: int) -> np.ndarray:
        """The bytes of pieces of the object: (offset, length), one after the other."""
        out, at = np.empty(size, np.uint8), 0
        for offset, length in extents:
            out[at : at + length] = self._files.read(self._entry, offset, offset + length)
            at += length
        out.flags.writeable = False
        return out

    def payload(self, region: Region) -> np.ndarray:
        if region.kind == "stream":
            return self.streams[region.name]
        with held_by_numpy(region.name, region.shape):
            raw = self._files.read(self._entry, region.offset, region.offset + region.bytes)
            return raw.view(region.dtype).reshape(region.shape)

    def region(self, name: str) -> Region:
        """What is known of a region without reading it."""
        if name in self._arrays:
            return self._arrays[name]
        if name in self.streams:
            return self.streams.region(name)
        return self.files.region(name)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.payload(self.region(name))

    def __contains__(self, name) -> bool:
        return name in self._arrays or name in self.streams or name in self.files

    def __iter__(self):
        return iter(dict.fromkeys([*self.streams, *(r.name for r in self.regions)]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<rank {self.number}: {', '.join(self)}>"


class _Streams(Mapping):
    """A rank's streams: name -> bytes (u1), in the order in which they were opened."""

    def __init__(self, view: RankView, base: int, found: dict[str, streams.Stream]):
        self._view, self._base, self._found = view, base, found

    def region(self, name: str) -> Region:
        """As if it were a region of its own."""
        size = self._stream(name).bytes
        return Region(name, "stream", records.DTYPES[1], (size,), size, self._base)

    def _stream(self, name: str) -> streams.Stream:
        if name not in self._found:
            raise NotFoundError(f"rank {self._view.number} has no stream '{name}'")
        return self._found[name]

    def __getitem__(self, name: str) -> np.ndarray:
        stream = self._stream(name)
        extents = [(self._base + offset, length) for offset, length in stream.extents]
        with held_by_numpy(name, (stream.bytes,)):
            return self._view.bytes_at(extents, stream.bytes)

    def __contains__(self, name) -> bool:
        return name in self._found

    def __iter__(self):
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class _Payloads(Mapping):
    """Some of a rank's regions: name -> array."""

    def __init__(self, view: RankView, regions: list[Region]):
        self._view = view
        self._regions = {r.name: r for r in regions}

    def region(self, name: str) -> Region:
        if name not in self._regions:
            raise NotFoundError(f"rank {self._view.number} has no region '{name}'")
        return self._regions[name]

    def __getitem__(self, name: str) -> np.ndarray:
        return self._view.payload(self.region(name))

    def __contains__(self, name) -> bool:
        return name in self._regions

    def __iter__(self):
        return iter(self._regions)

    def __len__(self) -> int:
        return len(self._regions)
