"""The files of one node: manifest and segment. Bytes of an object, verified when first touched."""

import os

import numpy as np

from . import checksum, records
from .errors import DamagedError, IncompleteError


class NodeFiles:
    def __init__(self, folder: str, node: int, check: bool):
        self._manifest_path = os.path.join(folder, f"node-{node:07d}.manifest")
        self._segment_path = os.path.join(folder, f"node-{node:07d}.segment")
        self._check = check
        with open(self._manifest_path, "rb") as file:
            self.manifest = records.manifest(file.read(), self._manifest_path)
        if self.manifest.node != node:
            raise DamagedError(f"{self._manifest_path}: belongs to node {self.manifest.node}")
        self._verified = np.zeros(len(self.manifest.chunks), dtype=bool)
        self._map = None

    def _segment(self) -> np.ndarray:
        """The segment, mapped; its header and length are checked the first time."""
        if self._map is None:
            path, m = self._segment_path, self.manifest
            if not os.path.exists(path):
                raise IncompleteError(f"{path}: missing, but its manifest is here")
            if os.path.getsize(path) < m.segment_bytes:
                raise DamagedError(f"{path}: shorter than the {m.segment_bytes} bytes that count")
            mapped = np.memmap(path, dtype=np.uint8, mode="r")
            head = records.segment_header(mapped[: records.SEGMENT_HEADER_BYTES].tobytes(), path)
            if (head["job"], head["version"], head["run"], head["node"]) != (
                m.job,
                m.version,
                m.run,
                m.node,
            ):
                raise DamagedError(f"{path}: belongs to another version than its manifest")
            self._map = mapped
        return self._map

    def _payload(self, index: int) -> np.ndarray:
        chunk = self.manifest.chunks[index]
        begin = int(chunk["segment_offset"])
        payload = self._segment()[begin : begin + int(chunk["length"])]
        if self._check and not self._verified[index]:
            if not checksum.matches(payload, int(chunk["checksum"])):
                raise DamagedError(
                    f"{self._segment_path}: bytes {begin} to {begin + len(payload)} (rank "
                    f"{chunk['rank']}) do not match their checksum"
                )
            self._verified[index] = True
        return payload

    def entry(self, rank: int):
        """The manifest's entry of a rank, or None."""
        ranks = self.manifest.objects["rank"]
        at = int(np.searchsorted(ranks, rank))
        return self.manifest.objects[at] if at < len(ranks) and ranks[at] == rank else None

    def read(self, entry, begin: int, end: int) -> np.ndarray:
        """Bytes [begin, end) of an object, read-only: mapped where one chunk holds them all."""
        if begin == end:
            return np.empty(0, np.uint8)
        first, count = int(entry["first_chunk"]), int(entry["chunks"])
        offsets = self.manifest.chunks["object_offset"][first : first + count]
        low = int(np.searchsorted(offsets, begin, side="right")) - 1
        high = int(np.searchsorted(offsets, end, side="left"))
        if high - low == 1:
            skip = begin - int(offsets[low])
            return self._payload(first + low)[skip : skip + end - begin]
        out = np.empty(end - begin, np.uint8)
        for index in range(low, high):
            payload, at = self._payload(first + index), int(offsets[index])
            source = payload[max(begin - at, 0) : end - at]
            target = max(at - begin, 0)
            out[target : target + len(source)] = source
        out.flags.writeable = False
        return out

    def verify(self) -> int:
        """Checks every chunk again, whatever was seen before; returns the bytes."""
        before, self._check = self._check, True
        self._verified[:] = False
        try:
            self._segment()
            return sum(len(self._payload(index)) for index in range(len(self._verified)))
        finally:
            self._check = before
