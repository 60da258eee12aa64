"""Captured files and versions that need another.

They are read against the golden job `captured` (tests/golden/README.md).
"""

import pathlib
import random
import shutil
import struct

import backstay
import numpy as np
import pytest
from backstay import format as fmt
from backstay.format import captured

xxhash = pytest.importorskip("xxhash")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "v2" / "captured"
FOLDER, OLDER = "v0000000000000013", "v0000000000000012"
SEED = random.SystemRandom().randrange(2**32)


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return random.Random(SEED)


@pytest.fixture
def job(tmp_path):
    return pathlib.Path(shutil.copytree(GOLDEN, tmp_path / "captured"))


def payload(more):
    return lambda begin, end: ((7 * np.arange(begin, end) + more) % 251).astype(np.uint8)


def test_files_are_listed():
    v = backstay.open(GOLDEN)
    assert (v.number, v.needs) == (13, [12])
    assert [(f.path, f.owner, f.mode, f.size) for f in v.files()] == [
        (b"/run/heat/empty", "rank 1", 0o600, 0),
        (b"/run/heat/log \xff.txt", "writer 0", 0o644, 3000),
        (b"/run/heat/out.bin", "rank 1", 0o640, 10_000),
        (b"/run/sparse", "writer 0", 0o444, 1 << 20),
    ]
    out = v.file("/run/heat/out.bin")
    assert out.modified_ns == 1_795_000_020_250_000_000 and out.accessed_ns == -1
    with pytest.raises(fmt.NotFoundError, match="no captured file '/run/nothing'"):
        v.file("/run/nothing")


def test_files_are_read():
    v = backstay.open(GOLDEN)
    bytes_of = payload(1)
    expected = np.zeros(10_000, np.uint8)
    expected[:6000] = bytes_of(0, 6000)
    expected[9000:] = bytes_of(6000, 7000)
    expected[1000:1500] = bytes_of(7000, 7500)
    expected[1400:1900] = bytes_of(7500, 8000)
    out = v.file("/run/heat/out.bin")
    np.testing.assert_array_equal(out.read(), expected)
    for begin, end in ((0, 1), (999, 1501), (5999, 9001), (9999, 20_000)):
        np.testing.assert_array_equal(out.read(begin, end), expected[begin:end])
    np.testing.assert_array_equal(v.file(b"/run/heat/log \xff.txt").read(), payload(0)(1000, 4000))
    assert v.file("/run/heat/empty").read().size == 0
    sparse = v.file("/run/sparse")
    assert [(at, len(data)) for at, data in sparse.blocks(600)] == [
        (1 << 19, 600),
        ((1 << 19) + 600, 400),
    ]
    assert int(np.count_nonzero(sparse.read())) <= 1000


def test_regions_are_read_through_the_older_version():
    v = backstay.open(GOLDEN / FOLDER)
    older = backstay.open(GOLDEN / OLDER)
    np.testing.assert_array_equal(v.rank(0)["u"], older.rank(0)["u"])
    np.testing.assert_array_equal(v.rank(1)["u"], np.arange(1500) / 4 + 1001)
    np.testing.assert_array_equal(v["rows"], older["rows"])
    assert v.verify() == v.payload_bytes > older.payload_bytes


def needed_place(job):
    """Where a byte lies in version 12 that version 13 names there."""
    chunks = fmt.open(job / FOLDER)._nodes[0].manifest.chunks
    return int(chunks[chunks["need"] == 1][0]["segment_offset"])


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_damaged_need_is_damage_that_names_it(job):
    flip(job / OLDER / "node-0000000.segment", needed_place(job))
    with pytest.raises(
        fmt.DamagedError, match="v0000000000000013 needs version 12: .* do not match their checksum"
    ):
        fmt.open(job / FOLDER).verify()


@pytest.mark.parametrize(
    "harm, says",
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:4096]), "shorter than"),
        (lambda path: flip(path, 40), "checksum does not match"),
        (
            lambda path: shutil.copyfile(path.parents[1] / FOLDER / path.name, path),
            "is another version",
        ),
    ],
)
def test_a_need_that_is_not_there(job, harm, says):
    harm(job / OLDER / "node-0000000.segment")
    with pytest.raises(fmt.DamagedError, match=f"needs version 12: .*{says}"):
        fmt.open(job / FOLDER).verify()
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(fmt.NotFoundError):
        fmt.open(job)


def test_a_need_may_have_lost_its_record(job):
    """What proves the bytes is their segment's header, and their checksums.

    The checksums are in the version that needs them.
    """
    (job / OLDER / "commit.local").unlink()
    (job / OLDER / "node-0000000.manifest").unlink()
    assert fmt.open(job / FOLDER).verify() > 0


def test_needs_of_the_record_are_those_of_the_manifests(job):
    path = job / FOLDER / "commit.local"
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, 184, 11)
    struct.pack_into("<Q", data, 504, xxhash.xxh3_64_intdigest(bytes(data[:504])))
    path.write_bytes(data)
    with pytest.raises(fmt.DamagedError, match="need other versions than was committed"):
        fmt.open(job / FOLDER)


def test_random_extents_against_a_plain_model(rng):
    for _ in range(300):
        size = rng.randrange(1, 300)
        extents, model = [], [None] * size
        for _ in range(rng.randrange(0, 20)):
            begin = rng.randrange(size)
            length, source = rng.randrange(1, size - begin + 1), rng.randrange(10_000)
            extents.append((begin, length, source))
            model[begin : begin + length] = range(source, source + length)
        pieces = captured.resolve(np.array(extents, captured.EXTENT))
        got, last = [None] * size, 0
        for at, length, source in pieces:
            assert at >= last and length > 0
            got[at : at + length] = range(source, source + length)
            last = at + length
        assert got == model


def table(records, payload_end=64):
    """The object of a writer with this table, and a stand-in for its node's files."""
    body = bytes(payload_end) + records
    footer = bytearray(64)
    footer[:8] = b"BKSTOBJ1"
    struct.pack_into(
        "<IIQQQI", footer, 8, 2, 1, payload_end, len(records), xxhash.xxh3_64_intdigest(records), 2
    )
    struct.pack_into("<Q", footer, 56, xxhash.xxh3_64_intdigest(bytes(footer[:56])))
    data = np.frombuffer(body + bytes(footer), np.uint8)

    class Files:
        class manifest:
            node = 0

        @staticmethod
        def read(entry, begin, end):
            return data[begin:end]

    entry = np.array([(0, 1, 2, len(data), 0, 1)], fmt.records.OBJECT_ENTRY)[0]
    return captured.files_of(Files, entry, "here")


def record(path=b"/f", mode=0o600, size=10, extents=((0, 5, 0),), nanoseconds=0, count=None):
    head = struct.pack("<H", len(path)) + path
    head += struct.pack(
        "<IIQQqIqI", mode, len(extents) if count is None else count, size, 0, 0, nanoseconds, 0, 0
    )
    return head + b"".join(struct.pack("<QQQ", *extent) for extent in extents)


def test_lies_of_a_table():
    assert table(record())[0].size == 10
    for wrong, why in (
        (record(path=b"f"), "path"),
        (record(path=b"/a/../f"), "path"),
        (record(path=b"/"), "path"),
        (record(mode=0o10000), "mode"),
        (record(nanoseconds=10**9), "times"),
        (record(count=2**31), "number of extents"),
        (record(extents=((6, 5, 0),)), "outside"),
        (record(extents=((2**64 - 1, 2, 0),)), "outside"),
        (record(extents=((0, 5, 60),)), "outside"),
        (record(extents=((0, 0, 0),)), "outside"),
        (record() + b"x", "longer"),
        (record()[:20], "malformed"),
    ):
        with pytest.raises(fmt.DamagedError, match=why):
            table(wrong)


def test_a_file_larger_than_any_memory():
    huge = table(record(size=2**63))[0]
    with pytest.raises(fmt.FormatError):
        huge.read()
    np.testing.assert_array_equal(huge.read(2**62, 2**62 + 3), [0, 0, 0])


def test_random_changes_never_crash(job, rng):
    originals = {p: p.read_bytes() for p in (job / FOLDER).iterdir()}
    for _ in range(200):
        path = rng.choice(sorted(originals))
        data = bytearray(originals[path])
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            for one in fmt.open(job / FOLDER).files():
                one.read()
        except fmt.FormatError:
            pass
        path.write_bytes(originals[path])
