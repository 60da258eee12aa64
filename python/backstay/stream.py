"""Streams: named rows of bytes of the next version (backstay_streams.h says what is promised).

    with backstay.open_stream("cell 17") as stream:
        stream.write(positions)
        stream.write(b"more")
    backstay.checkpoint()
    ...
    for name, size in backstay.streams(version).items():
        data = backstay.read_stream(version, name)
"""

import numpy as np

from . import _session as _c
from .session import _check, _text, _version_number, _whole, _whole_array


class Stream:
    """A stream that is open.

    A `with` block closes it, unless an exception ends the block: then it stays open, and the next
    checkpoint refuses it, so that what was left half written is no part of a version.
    """

    def __init__(self, name: str, number: int):
        self.name, self._number = name, number

    def write(self, data) -> None:
        """Appends the bytes of a C-contiguous array, or of any object with a buffer."""
        raw = _bytes_of(data)
        _check(_c.stream_write(self._number, raw.ctypes.data if raw.size else 0, raw.size))

    def close(self) -> None:
        _check(_c.stream_close(self._number))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, _, error, __) -> None:
        if error is None:
            self.close()

    def __repr__(self) -> str:
        return f"<stream '{self.name}'>"


def open_stream(name: str) -> Stream:
    """Begins a stream of the next version; several may be open at a time."""
    code, number = _c.stream_open(_text("name of a stream", name))
    _check(code)
    return Stream(name, number)


def streams(version: int) -> dict[str, int]:
    """Name -> bytes of this rank's streams in a version, in the order in which they were opened."""
    code, found = _c.streams(_version_number(version))
    _check(code)
    return dict(found)


def read_stream(version: int, name: str, offset: int = 0, size: int | None = None) -> np.ndarray:
    """Bytes of a stream (u1), verified: `size` of them from `offset` on; all that follow, if none
    is given. `.view(dtype)` makes other elements of them."""
    first, _ = _number("offset", offset), _text("name of a stream", name)
    if size is None:
        code, whole = _c.stream_bytes(_version_number(version), name)
        _check(code)
        size = max(whole - first, 0)
    out = np.empty(_number("size", size), np.uint8)
    _check(_c.stream_read(_version_number(version), name, first,
                          out.ctypes.data if out.size else 0, out.size))
    return out


def _number(what: str, value) -> int:
    number = _whole(what, value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{what}: {number} is no number of bytes")
    return number


def _bytes_of(data) -> np.ndarray:
    if isinstance(data, np.ndarray):
        _whole_array("data", data)
        if not data.flags.c_contiguous:
            raise TypeError("data: the array is not C-contiguous; write a copy (array.copy())")
        return data.reshape(-1).view(np.uint8) if data.size else np.empty(0, np.uint8)
    try:
        return np.frombuffer(data, np.uint8) if memoryview(data).nbytes else np.empty(0, np.uint8)
    except TypeError:
        raise TypeError("data: bytes or a C-contiguous array are needed, "
                        f"not {type(data).__name__}") from None
