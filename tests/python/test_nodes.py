"""The reader of versions whose parts several nodes have written."""

import struct

import numpy as np
import pytest
from backstay import format as fmt
from test_format import change, job, seal, version  # noqa: F401 (two are fixtures)


def split(version):
    """Makes the golden version a durable one of two nodes, rank r on node r.

    Returns the digests of the manifests, and how long the objects are that they list.
    """
    manifest = fmt.open(version)._nodes[0].manifest
    segment = (version / "node-0000000.segment").read_bytes()
    digests, lengths = [], []
    for node in (0, 1):
        entry = manifest.objects[node : node + 1].copy()
        first, count = int(entry["first_chunk"][0]), int(entry["chunks"][0])
        entry["first_chunk"] = 0
        data = bytearray((version / "node-0000000.manifest").read_bytes()[:192])
        struct.pack_into("<I", data, 12, node)
        struct.pack_into("<IIQ", data, 40, 1, 2, count)
        seal(data, 184)
        chunks = manifest.chunks[first : first + count].copy()
        chunks["object"] = 0
        data += entry.tobytes() + chunks.tobytes() + bytes(8)
        seal(data, len(data) - 8)
        digests.append(struct.unpack("<Q", data[-8:])[0])
        lengths.append(int(entry["bytes"][0]))
        (version / f"new-{node}").write_bytes(data)
        header = bytearray(segment)
        struct.pack_into("<I", header, 12, node)
        seal(header, 152)
        (version / f"node-{node:07d}.segment").write_bytes(header)
    for node in (0, 1):
        (version / f"new-{node}").rename(version / f"node-{node:07d}.manifest")
    record = (version / "commit.local").rename(version / "commit.durable")
    change(record, 12, "I", 4)
    change(record, 32, "I", 2)
    change(record, 48, "Q", sum(digests) % 2**64, seals=(504,))
    return digests, lengths


def split_with_copies(version):
    """The same on a node's own disk, with copies of the other one's part: it is that of node 1."""
    digests, lengths = split(version)
    record = (version / "commit.durable").rename(version / "commit.local")
    change(record, 12, "I", 2)
    change(record, 40, "Q", lengths[1])
    change(record, 48, "Q", digests[1], seals=(504,))
    return record


def test_a_node_with_copies_of_all_parts(version):
    record = split_with_copies(version)
    v = fmt.open(version)
    assert (v.nodes, v.level, v.complete, v.ranks_here()) == (2, "local", True, [0, 1])
    np.testing.assert_array_equal(v["rows"], 100 * np.arange(6)[:, None] + np.arange(8))
    change(record, 48, "Q", 1, seals=(504,))
    with pytest.raises(fmt.DamagedError, match="not those that were committed"):
        fmt.open(version)


def test_a_record_of_one_node_may_name_what_other_nodes_need(version):
    record = split_with_copies(version)
    data = bytearray(record.read_bytes())
    struct.pack_into("<I", data, 176, 1)
    struct.pack_into("<QQ", data, 184, 7, fmt.open(version).run)
    seal(data, 504)
    record.write_bytes(data)
    assert fmt.open(version).needs == []


def test_two_nodes(version):
    split(version)
    v = fmt.open(version)
    assert v.nodes == 2 and v.complete
    assert v.verify() == v.payload_bytes
    np.testing.assert_array_equal(v["rows"], 100 * np.arange(6)[:, None] + np.arange(8))


def test_node_that_is_elsewhere(version):
    split(version)
    (version / "node-0000001.manifest").unlink()
    v = fmt.open(version)
    assert not v.complete and v.ranks_here() == [0]
    np.testing.assert_array_equal(v.rank(0)["u"], np.arange(1500) / 4)
    with pytest.raises(fmt.NotFoundError, match="on a node whose files are not in this folder"):
        v.rank(1)
    for use in (lambda: v["u"], lambda: v["rows"], v.verify):
        with pytest.raises(fmt.IncompleteError, match="1 of 2 nodes"):
            use()


def test_rank_on_two_nodes(version):
    split(version)
    path = version / "node-0000001.manifest"
    path.write_bytes((version / "node-0000000.manifest").read_bytes())
    change(path, 12, "I", 1, seals=(184, -8))
    with pytest.raises(fmt.DamagedError, match="two nodes claim rank 0"):
        fmt.open(version)
