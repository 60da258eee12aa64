"""The reader of versions against the golden one with streams, and against wrong indexes."""

import pathlib
import struct

import numpy as np
import pytest

import backstay
from backstay.format import DamagedError, NotFoundError, streams

xxhash = pytest.importorskip("xxhash")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "v2" / "streams"
WANTED = {"left": b"abcd", "right": b"xyz", "none": b""}


def test_the_golden_version():
    version = backstay.open(GOLDEN)
    view = version.rank(0)
    assert {name: data.tobytes() for name, data in view.streams.items()} == WANTED
    assert list(view) == [*WANTED, "u"] and len(view) == 4
    assert version["right"].tobytes() == b"xyz"
    np.testing.assert_array_equal(version["u"], np.arange(1500) / 4)
    assert [region.name for region in view.regions] == ["u"]
    assert version.verify() == version.payload_bytes
    with pytest.raises(NotFoundError, match="no stream 'other'"):
        view.streams["other"]


def record(name, extents, size=None):
    size = sum(length for _, length in extents) if size is None else size
    data = struct.pack("<H", len(name)) + name + struct.pack("<IQ", len(extents), size)
    return data + b"".join(struct.pack("<QQ", *extent) for extent in extents)


@pytest.mark.parametrize("records, why", [
    ([record(b"a", [(0, 4)])], "cover"),
    ([record(b"a", [(0, 5)], size=4)], "length"),
    ([record(b"a", [(0, 0), (1, 5)])], "without bytes"),
    ([record(b"a", [(0, 2), (2, 3)])], "behind the one before"),
    ([record(b"a", [(0, 3)]), record(b"b", [(2, 3)])], "overlap"),
    ([record(b"a", [(0, 5)]), record(b"a", [])], "twice"),
    ([record(b"", [(0, 5)])], "name"),
    ([record(b"a", [(0, 5)]) + b"x"], "longer"),
    ([record(b"a", [(0, 5)])[:-1]], "malformed"),
])  # fmt: skip
def test_an_index_that_is_wrong(records, why):
    with pytest.raises(DamagedError, match=why):
        streams.index(b"".join(records), 5, len(records), "a test")


@pytest.mark.parametrize("data", [
    struct.pack("<8sQII", b"BKSTSTR2", 5, 1, 0), struct.pack("<8sQII", b"BKSTSTR1", 5, 1, 1),
    struct.pack("<8sQII", b"BKSTSTR1", 77, 1, 0), struct.pack("<8sQII", b"BKSTSTR1", 5, 0, 0),
    b"short",
])  # fmt: skip
def test_a_trailer_that_is_wrong(data):
    with pytest.raises(DamagedError):
        streams.trailer(data, 100, "a test")
