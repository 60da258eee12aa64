"""The regions of one rank as a mapping of names to arrays."""

import contextlib
from collections.abc import Mapping

import numpy as np

from . import records
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
    """The regions of one rank: name -> array. Files are found by their name too, as bytes (u1);
    where an array and a file share a name, the array wins and `files` holds the other."""

    def __init__(self, files: NodeFiles, rank: int, what: str):
        self._files = files
        self._entry = files.entry(rank)
        self.number = rank
        self.regions: list[Region]
        self.notes: dict[str, str]  # what the object says about itself, such as its "program"
        self.regions, self.notes = self._read_table(f"{what}: rank {rank}")
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

    def payload(self, region: Region) -> np.ndarray:
        with held_by_numpy(region.name, region.shape):
            raw = self._files.read(self._entry, region.offset, region.offset + region.bytes)
            return raw.view(region.dtype).reshape(region.shape)

    def region(self, name: str) -> Region:
        """What is known of a region without reading it."""
        if name in self._arrays:
            return self._arrays[name]
        return self.files.region(name)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.payload(self.region(name))

    def __contains__(self, name) -> bool:
        return name in self._arrays or name in self.files

    def __iter__(self):
        return iter(dict.fromkeys(r.name for r in self.regions))

    def __len__(self) -> int:
        return len({r.name for r in self.regions})

    def __repr__(self) -> str:
        return f"<rank {self.number}: {', '.join(self)}>"


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
