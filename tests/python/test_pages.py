"""The dumps in docs/format are what the pages say, and this reader reads them."""

import pathlib
import re
import struct

import numpy as np
import pytest
from backstay import format as fmt
from backstay.format import records, streams

xxhash = pytest.importorskip("xxhash")

PAGES = pathlib.Path(__file__).parents[2] / "docs" / "format"
JOB, VERSION, RUN, CAPTURED = "heat", 12, 0x1122334455667788, 1_795_000_000_000_000_000
_LINE = re.compile(r"    ([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)$")


def dumps(page):
    """The dumps of a page, each as {offset: bytes}."""
    found, current = [], None
    for line in (PAGES / page).read_text(encoding="utf-8").splitlines():
        match = _LINE.match(line)
        if match and current is None:
            current = {}
            found.append(current)
        if match:
            current[int(match[1], 16)] = bytes.fromhex(match[2])
        else:
            current = None
    return found


def filled(dump, begin, end):
    data = bytearray(end - begin)
    for at, row in dump.items():
        data[at - begin : at - begin + len(row)] = row
    assert len(data) == end - begin
    return bytes(data)


def payload(rank):
    return struct.pack("<q56x1000d", 1000, *(k + 1000.0 * rank for k in range(1000)))


def example_object(rank):
    # The table says nothing of values, so both ranks end alike.
    return payload(rank) + filled(dumps("object.md")[0], 8064, 8201)


def example_files():
    segment = bytearray(filled(dumps("segment.md")[0], 0, 4096) + bytes(28672 - 4096))
    segment[4096 : 4096 + 8201] = example_object(1)
    segment[16384 : 16384 + 8201] = example_object(0)
    manifest, _, commit = dumps("manifest.md")
    return {
        "node-0000000.segment": bytes(segment),
        "node-0000000.manifest": filled(manifest, 0, 344),
        "commit.local": filled(commit, 0, 512),
    }


def test_checksums_of_the_overview():
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    assert f"`{xxhash.xxh3_64_hexdigest(b'')}`" in text
    assert f"`{xxhash.xxh3_64_hexdigest(b'abc')}`" in text


def test_object_page():
    data = example_object(1)
    offset, length, table_sum, count = records.footer(data[-64:], len(data), "object.md")
    assert (offset, length, count) == (8064, 73, 2)
    table = data[offset : offset + length]
    regions, notes = records.table(table, offset, table_sum, count, "object.md")
    assert [(r.name, r.kind, r.dtype, r.offset, r.shape) for r in regions] == [
        ("step", "array", np.int64, 0, (1,)),
        ("u", "array", np.float64, 64, (1000,)),
    ]
    assert notes == {}


def test_note_of_the_object_page():
    table = filled(dumps("object.md")[0], 8064, 8201)[:73] + filled(dumps("object.md")[1], 8137,
        8153)
    regions, notes = records.table(table, 8064, xxhash.xxh3_64_intdigest(table), 3, "object.md")
    assert [r.name for r in regions] == ["step", "u"]
    assert notes == {"program": "heat"}


def wrong_table(table, records_in_it, message):
    with pytest.raises(fmt.DamagedError, match=message):
        records.table(table, 8064, xxhash.xxh3_64_intdigest(table), records_in_it, "object.md")


def test_wrong_notes_are_refused():
    regions = filled(dumps("object.md")[0], 8064, 8201)[:73]
    note = filled(dumps("object.md")[1], 8137, 8153)
    empty = struct.pack("<H1sBBBBIQQQ", 1, b"e", 1, 1, 1, 0, 0, 8064, 0, 0)
    wrong_table(regions + note + note, 4, "note 'program' occurs twice")
    wrong_table(regions + note + empty, 4, "stands behind a note")
    wrong_table(regions + note[:-6] + b"\0\0", 3, "1 to 200 bytes of text")
    many = b"".join(struct.pack("<H2sBH1s", 2, b"%02d" % i, 3, 1, b"x") for i in range(17))
    wrong_table(regions + many, 19, "number of notes")


def captured_object():
    return filled(dumps("files.md")[0], 0, 314)


def test_the_pages_make_a_version_that_needs_another(tmp_path):
    older = tmp_path / "heat" / "v0000000000000012"
    older.mkdir(parents=True)
    for name, data in example_files().items():
        (older / name).write_bytes(data)
    newer = tmp_path / "heat" / "v0000000000000013"
    newer.mkdir()
    changed = struct.pack("<q", 1001) + example_object(1)[8:]
    segment = bytearray(example_files()["node-0000000.segment"][:20480])
    segment[4096:] = bytes(20480 - 4096)
    struct.pack_into("<QQ", segment, 16, 13, RUN + 1)
    struct.pack_into("<Q", segment, 152, xxhash.xxh3_64_intdigest(bytes(segment[:152])))
    segment[4096 : 4096 + 314] = captured_object()
    segment[8192 : 8192 + 8201] = changed
    manifest = filled(dumps("manifest.md")[1], 0, 432)
    commit = bytearray(example_files()["commit.local"])
    struct.pack_into("<QQ", commit, 16, 13, RUN + 1)
    (digest,) = struct.unpack("<Q", manifest[-8:])
    struct.pack_into("<QQQQ", commit, 40, 2 * 8201 + 314, digest, CAPTURED, CAPTURED)
    struct.pack_into("<IIQQ", commit, 176, 1, 0, 12, RUN)
    struct.pack_into("<Q", commit, 504, xxhash.xxh3_64_intdigest(bytes(commit[:504])))
    for name, data in (("segment", segment), ("manifest", manifest)):
        (newer / f"node-0000000.{name}").write_bytes(data)
    (newer / "commit.local").write_bytes(commit)
    v = fmt.open(tmp_path / "heat")
    assert (v.number, v.needs) == (13, [12])
    assert v.verify() == 2 * 8201 + 314
    assert v.rank(0)["step"] == [1000] and v.rank(1)["step"] == [1001]
    np.testing.assert_array_equal(v.rank(0)["u"], np.arange(1000))
    assert [file.path for file in v.files()] == [b"/w/out", b"/w/ready"]
    out = v.file("/w/out")
    assert (out.mode, out.size, out.owner, out.node) == (0o640, 4100, "writer 0", 0)
    assert out.modified_ns == CAPTURED - 500_000_000 and out.accessed_ns == CAPTURED - 2_000_000_000
    assert out.read().tobytes() == b"hello there\n" + bytes(4084) + b"end\n"
    assert v.file("/w/ready").read().tobytes() == b""


def test_segment_page():
    head = records.segment_header(example_files()["node-0000000.segment"], "segment.md")
    expected = {"job": JOB, "node": 0, "version": VERSION, "run": RUN, "created_ns": CAPTURED}
    assert head == expected


def test_the_pages_make_a_version(tmp_path):
    folder = tmp_path / "heat" / "v0000000000000012"
    folder.mkdir(parents=True)
    for name, data in example_files().items():
        (folder / name).write_bytes(data)
    v = fmt.open(tmp_path / "heat")
    assert (v.job, v.number, v.run, v.nodes, v.ranks) == (JOB, VERSION, RUN, 1, 2)
    assert v.captured_ns == CAPTURED
    assert v.commits["local"].committed_ns == CAPTURED + 750_000_000
    assert v.verify() == 2 * 8201 == v.payload_bytes
    for rank in (0, 1):
        assert v.rank(rank)["step"] == [1000]
        np.testing.assert_array_equal(v.rank(rank)["u"], np.arange(1000) + 1000.0 * rank)


def test_streams():
    payload = filled(dumps("streams.md")[0], 0, 134)
    offset, count = streams.trailer(payload[-streams.TRAILER_BYTES :], 134, "the page")
    assert (offset, count) == (7, 3)
    found = streams.index(payload[offset : -streams.TRAILER_BYTES], offset, count, "the page")
    text = {name: b"".join(payload[a : a + b] for a, b in stream.extents)
            for name, stream in found.items()}
    assert text == {"left": b"abcd", "right": b"xyz", "none": b""}
