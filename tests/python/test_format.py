"""The reader of versions against the golden files and damaged copies of them."""

import importlib
import os
import pathlib
import random
import shutil
import struct
import sys
import warnings

import backstay
import numpy as np
import pytest
from backstay import format as fmt
from backstay.format import checksum, records

xxhash = pytest.importorskip("xxhash")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "v2" / "golden"
FOLDER = "v0000000000000012"
SEED = random.SystemRandom().randrange(2**32)


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return random.Random(SEED)


@pytest.fixture
def job(tmp_path):
    """A copy of the golden job that may be changed."""
    return pathlib.Path(shutil.copytree(GOLDEN, tmp_path / "golden"))


@pytest.fixture
def version(job):
    return job / FOLDER


def seal(data: bytearray, at: int, begin: int = 0) -> None:
    struct.pack_into("<Q", data, at, xxhash.xxh3_64_intdigest(bytes(data[begin:at])))


def change(path: pathlib.Path, at: int, layout: str, value, seals=()) -> None:
    """Overwrites a number and makes the named checksums good again."""
    data = bytearray(path.read_bytes())
    struct.pack_into("<" + layout, data, at, value)
    for place in seals:
        seal(data, place if place >= 0 else len(data) + place)
    path.write_bytes(data)


# --- what the golden version holds (tests/golden/README.md) ---------------------------------------


def test_facts_of_the_version():
    v = backstay.open(GOLDEN / FOLDER)
    assert (v.job, v.number, v.level, v.ranks, v.nodes) == ("golden", 12, "local", 2, 1)
    assert v.captured_ns == 1_795_000_000_000_000_000
    assert v.run == 0x0102030405060708
    assert v.complete and v.checked
    assert v.ranks_here() == [0, 1]


def test_job_folder_opens_newest():
    assert backstay.open(GOLDEN).number == 12
    assert backstay.open(str(GOLDEN)).number == 12


@pytest.mark.parametrize("number", range(1, 14))
@pytest.mark.parametrize("rank", [0, 1])
def test_every_type(number, rank):
    names = "byte int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    name = (names + "float32 float64 complex64 complex128").split()[number - 1]
    array = backstay.open(GOLDEN)["all." + name][rank]
    expected = 3 * np.arange(5 + number) + rank + number
    if name.startswith("complex"):
        expected = expected / 2 - 1j * expected
    elif name.startswith("float"):
        expected = expected / 2
    assert array.dtype == np.dtype("uint8" if name == "byte" else name)
    np.testing.assert_array_equal(array, expected)


def test_region_over_several_chunks():
    v = backstay.open(GOLDEN)
    for rank in (0, 1):
        np.testing.assert_array_equal(v.rank(rank)["u"], np.arange(1500) / 4 + rank)
        np.testing.assert_array_equal(v["u"][rank], v.rank(rank)["u"])
        assert not v["u"][rank].flags.writeable


def overwrite_as_an_agent_does(version):
    """Retention: the version goes, and its segment's file is written again for a newer one."""
    segment = version / "node-0000000.segment"
    with open(segment, "r+b") as file:
        file.write(bytes([0xA5]) * segment.stat().st_size)
    segment.rename(version.parent / "newer")
    shutil.rmtree(version)


def test_an_array_stays_what_it_was_when_its_version_is_removed(version):
    v = backstay.open(version)
    array, several = v.rank(0)["all.int32"], v.rank(0)["u"]
    before, before_several = array.copy(), several.copy()
    overwrite_as_an_agent_does(version)
    np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(several, before_several)
    assert not array.flags.writeable


@pytest.mark.parametrize("touched", [False, True])
def test_a_version_that_was_removed_meanwhile_is_no_damage(version, touched):
    v = backstay.open(version)
    if touched:
        v.verify()
    overwrite_as_an_agent_does(version)
    with pytest.raises(fmt.NotFoundError, match="was removed while it was read"):
        v["u"]
    with pytest.raises(fmt.NotFoundError, match="was removed while it was read"):
        v.verify()


def test_global_arrays():
    v = backstay.open(GOLDEN)
    for name, rows, columns, dtype in (("rows", 6, 8, "f8"), ("columns", 3, 5, "i4")):
        expected = 100 * np.arange(rows)[:, None] + np.arange(columns)
        assert v[name].dtype == dtype
        np.testing.assert_array_equal(v[name], expected)
    assert v.rank(1)["rows"].shape == (2, 8)


def test_region_of_one_rank_is_the_array():
    v = backstay.open(GOLDEN)
    np.testing.assert_array_equal(v["only on 1 ✓"], [-1, -2])
    with pytest.raises(fmt.NotFoundError, match="rank 0 has no region"):
        v.rank(0)["only on 1 ✓"]


def test_empty_region():
    assert backstay.open(GOLDEN).rank(0)["empty"].shape == (0, 3)


@pytest.mark.parametrize("shape", [(2**40, 2**40, 0), (0, 2**63)])
def test_shape_that_numpy_cannot_hold(shape):
    region = records.Region("odd", "array", np.dtype("f8"), shape, 0, 0)
    with pytest.raises(fmt.ShapeError, match="region 'odd' of shape"):
        backstay.open(GOLDEN).rank(0).payload(region)


def test_file_region():
    view = backstay.open(GOLDEN).rank(1)
    expected = bytes((k + 1) % 251 for k in range(310))
    assert view.files["log.1"].tobytes() == expected
    assert view["log.1"].tobytes() == expected
    assert view.region("log.1").mode == 0o640
    assert list(view.files) == ["log.1"]


def test_regions_and_mapping():
    v = backstay.open(GOLDEN)
    regions = v.regions(1)
    assert [r.name for r in regions][-3:] == ["empty", "only on 1 ✓", "log.1"]
    rows = next(r for r in regions if r.name == "rows")
    assert (rows.shape, rows.global_shape, rows.global_offset) == ((2, 8), (6, 8), (4, 0))
    assert "u" in v and "nothing" not in v and len(v) == 20
    assert "u" in v.rank(0) and "nothing" not in v.rank(0)
    assert v.get("nothing") is None
    assert "golden" in repr(v)


def test_verify_counts_every_byte():
    v = backstay.open(GOLDEN)
    assert v.verify() == v.payload_bytes


def test_names_that_do_not_exist():
    v = backstay.open(GOLDEN)
    with pytest.raises(fmt.NotFoundError, match="no region 'w'"):
        v["w"]
    with pytest.raises(fmt.NotFoundError, match="no rank 2"):
        v.rank(2)
    with pytest.raises(KeyError):
        v["w"]


# --- damage -------------------------------------------------------------------------------------


def everything(path):
    v = fmt.open(path)
    v.verify()
    return v


@pytest.mark.parametrize("name", ["commit.local", "node-0000000.manifest"])
def test_every_flipped_byte_of_small_records(version, name):
    path = version / name
    good = path.read_bytes()
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << (at % 8)
        path.write_bytes(bad)
        with pytest.raises(fmt.FormatError):
            everything(version)


def payload_bytes(version):
    """The positions of the segment that hold header or payload; the rest is padding."""
    v = fmt.open(version)
    taken = list(range(4096))
    for files in v._nodes.values():
        for chunk in files.manifest.chunks:
            begin = int(chunk["segment_offset"])
            taken += range(begin, begin + int(chunk["length"]))
    return taken


def test_flipped_bytes_of_the_segment(version, rng):
    path = version / "node-0000000.segment"
    good = path.read_bytes()
    for at in rng.sample(payload_bytes(version), 300):
        bad = bytearray(good)
        bad[at] ^= rng.randrange(1, 256)
        path.write_bytes(bad)
        with pytest.raises(fmt.FormatError):
            everything(version)


def test_damage_is_found_when_the_region_is_read(version):
    data = bytearray((version / "node-0000000.segment").read_bytes())
    v = fmt.open(version)
    first = v._nodes[0].manifest.chunks[0]
    data[int(first["segment_offset"])] ^= 1  # rank 0's first chunk: all.byte, not u
    (version / "node-0000000.segment").write_bytes(data)
    v = fmt.open(version)
    with pytest.raises(fmt.DamagedError, match="rank 0"):
        v.rank(0)["all.byte"]
    np.testing.assert_array_equal(v.rank(1)["all.byte"], 3 * np.arange(6) + 2)
    assert fmt.open(version, check=False).rank(0)["all.byte"][0] == 0


@pytest.mark.parametrize("name", ["commit.local", "node-0000000.manifest", "node-0000000.segment"])
def test_truncation(version, name, rng):
    path = version / name
    good = path.read_bytes()
    for size in [0, 1, 8, 100, len(good) - 1] + rng.sample(range(len(good)), 20):
        path.write_bytes(good[:size])
        with pytest.raises(fmt.FormatError):
            everything(version)


def test_missing_files(version):
    for name, words in (
        ("node-0000000.segment", "segment: missing"),
        ("node-0000000.manifest", "no manifest is here"),
        ("commit.local", "no commit record"),
    ):
        (version / name).unlink()
        with pytest.raises(fmt.IncompleteError, match=words):
            everything(version)


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: os.symlink("/nowhere", path)])
def test_what_is_no_file_sets_nothing_aside(version, put):
    """A pipe in the place of the mark blocked `open` without end."""
    put(version / "damaged")
    assert backstay.open(version).verify() > 0


def test_damaged_file(version, job):
    (version / "damaged").write_text("chunk of rank 1\nmore\n")
    with pytest.raises(fmt.DamagedError, match="chunk of rank 1"):
        fmt.open(version)
    v = fmt.open(version, damaged_ok=True)
    assert v.damage == "chunk of rank 1" and v.verify() > 0
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(fmt.NotFoundError):
        fmt.open(job)


def test_job_folder_skips_what_is_not_good(version, job):
    shutil.copytree(version, job / "v0000000000000013")  # says version 12 inside
    (job / "v0000000000000013" / "commit.local").unlink()
    assert fmt.open(job).number == 12
    with pytest.raises(fmt.IncompleteError, match="no commit record"):
        fmt.open(job / "v0000000000000013")


@pytest.mark.parametrize("make", [
    lambda path: path.write_bytes(bytes(256)), lambda path: path.mkdir(),
    lambda path: path.write_bytes(b""), os.mkfifo,
    lambda path: path.symlink_to("/dev/zero")], ids=["zeros", "folder", "empty", "pipe", "device"])
def test_job_folder_skips_what_is_no_record(version, job, make):
    newer = shutil.copytree(version, job / "v0000000000000013")
    (newer / "commit.local").unlink()
    make(newer / "commit.local")
    with pytest.warns(UserWarning, match="skipped"):
        assert fmt.open(job).number == 12


@pytest.mark.parametrize("record", [b"", b"x" * 512])
def test_damaged_record_of_a_higher_level_takes_nothing_from_a_lower_one(version, record):
    (version / "commit.protected").write_bytes(record)
    assert fmt.open(version).level == "local"
    (version / "commit.local").unlink()
    with pytest.raises(fmt.DamagedError):
        fmt.open(version)


def test_folder_of_another_version(version, job):
    other = shutil.copytree(version, job / "v0000000000000013")
    with pytest.raises(fmt.DamagedError, match="says version 12"):
        fmt.open(other)


def test_newer_format_is_named(version):
    for name in ("commit.local", "node-0000000.manifest"):
        path = version / name
        good = path.read_bytes()
        change(path, 8, "I", 3)
        with pytest.raises(fmt.UnsupportedError, match="format 3"):
            fmt.open(version)
        path.write_bytes(good)


def test_format_1_is_refused_with_the_release_that_wrote_it():
    old = GOLDEN.parents[1] / "v1" / "golden"
    said = "format 1, which release 0.1.0 wrote while it was in development"
    with pytest.raises(fmt.UnsupportedError, match=said):
        fmt.open(old / FOLDER)
    with pytest.warns(UserWarning, match="skipped"):
        with pytest.raises(fmt.UnsupportedError, match="format 1"):
            fmt.open(old)


def test_not_ours(tmp_path):
    with pytest.raises(fmt.NotFoundError):
        fmt.open(tmp_path / "nowhere")
    with pytest.raises(fmt.NotFoundError, match="no complete version"):
        fmt.open(tmp_path)
    (tmp_path / "commit.local").write_bytes(b"x" * 512)
    with pytest.raises(fmt.DamagedError, match="does not begin with"):
        fmt.open(tmp_path)


# Offsets in the manifest: header 192, objects 2 x 32, then chunks of 40.
OBJECTS = 192
CHUNKS = OBJECTS + 2 * 32
MANIFEST_LIES = {
    "more objects than bytes": (40, "I", 2**31),
    "more chunks than bytes": (48, "Q", 2**63),
    "segment not of whole slots": (32, "Q", 36865),
    "node beyond nodes": (12, "I", 1),
    "needs that are not there": (176, "I", 1),
    "more needs than any": (176, "I", 2**31),
    "zeros": (180, "I", 1),
    "rank twice": (OBJECTS + 32, "I", 0),
    "rank beyond ranks": (OBJECTS + 32, "I", 9),
    "unknown owner": (OBJECTS + 36, "H", 2),
    "regions of a writer": (OBJECTS + 36, "H", 1),
    "unknown kind": (OBJECTS + 6, "H", 7),
    "object longer than chunks": (OBJECTS + 8, "Q", 2**40),
    "chunks elsewhere": (OBJECTS + 16, "Q", 1),
    "chunk count": (OBJECTS + 24, "Q", 2**64 - 1),
    "chunk of another object": (CHUNKS, "I", 1),
    "empty chunk": (CHUNKS + 4, "I", 0),
    "chunk too long": (CHUNKS + 4, "I", 4097),
    "gap": (CHUNKS + 8, "Q", 1),
    "in the header": (CHUNKS + 16, "Q", 0),
    "not aligned": (CHUNKS + 16, "Q", 4608),
    "outside": (CHUNKS + 16, "Q", 2**64 - 4096),
    "on another": (CHUNKS + 16, "Q", 4096),
    "need that is not there": (CHUNKS + 32, "I", 1),
    "node without a need": (CHUNKS + 36, "I", 1),
}


@pytest.mark.parametrize("lie", MANIFEST_LIES)
def test_lies_with_good_checksums(version, lie):
    at, layout, value = MANIFEST_LIES[lie]
    path = version / "node-0000000.manifest"
    before = path.read_bytes()
    change(path, at, layout, value, seals=(184, -8))
    assert path.read_bytes() != before
    # Not even the sum in the commit record is in the way: the manifest itself is refused.
    with pytest.raises(fmt.DamagedError, match="manifest: "):
        records.manifest(path.read_bytes(), "manifest")


def test_manifest_that_was_not_committed(version):
    change(version / "node-0000000.manifest", 168, "Q", 1, seals=(184, -8))
    with pytest.raises(fmt.DamagedError, match="not those that were committed"):
        fmt.open(version)


# --- assembling ----------------------------------------------------------------------------------


def test_assemble(monkeypatch):
    v = backstay.open(GOLDEN)
    with pytest.raises(fmt.FormatError, match="not declared"):
        v.assemble("u")
    only_first = [v.rank(0)]
    monkeypatch.setattr(v, "_holders", lambda name: only_first)
    with pytest.raises(fmt.IncompleteError, match="at least 16 elements"):
        v.assemble("rows")
    filled = v.assemble("rows", fill=-1)
    assert (filled[4:] == -1).all() and filled[3, 7] == 307


# --- the worked examples of the pages ------------------------------------------------------------


def test_worked_example_of_the_object_page():
    step = struct.pack("<H4sBBBBIQQQ", 4, b"step", 1, 5, 1, 0, 0, 0, 8, 1)
    u = struct.pack("<H1sBBBBIQQQ", 1, b"u", 1, 11, 1, 0, 0, 64, 8000, 1000)
    table = step + u
    footer = bytearray(64)
    struct.pack_into("<8sIIQQQI", footer, 0, b"BKSTOBJ1", 2, 2, 8064, 73,
                     xxhash.xxh3_64_intdigest(table), 1)
    seal(footer, 56)
    offset, length, table_sum, count = records.footer(bytes(footer), 8201, "example")
    assert (offset, length, count) == (8064, 73, 2)
    regions, _ = records.table(table, offset, table_sum, count, "example")
    assert [(r.name, r.dtype, r.offset, r.shape) for r in regions] == [
        ("step", np.int64, 0, (1,)),
        ("u", np.float64, 64, (1000,)),
    ]


# --- without the xxhash package -------------------------------------------------------------------


@pytest.fixture
def without_xxhash(monkeypatch):
    monkeypatch.setitem(sys.modules, "xxhash", None)
    importlib.reload(checksum)
    yield
    monkeypatch.undo()
    importlib.reload(checksum)


def test_reads_without_xxhash(without_xxhash, version):
    with pytest.warns(fmt.ChecksumsSkippedWarning, match="without verification"):
        v = fmt.open(version)
    assert not v.checked
    np.testing.assert_array_equal(v["rows"], 100 * np.arange(6)[:, None] + np.arange(8))
    with pytest.raises(fmt.ChecksumsUnavailableError, match="pip install xxhash"):
        v.verify()


@pytest.mark.parametrize("lie", MANIFEST_LIES)
def test_lies_without_xxhash(without_xxhash, version, lie):
    at, layout, value = MANIFEST_LIES[lie]
    change(version / "node-0000000.manifest", at, layout, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(fmt.FormatError):
            fmt.open(version)


def test_random_changes_without_xxhash_never_crash(without_xxhash, version, rng):
    """No checksum guards this: only the structural checks do. Anything but a FormatError (or data
    that may be wrong, which the warning says) is a defect of the reader."""
    originals = {p: p.read_bytes() for p in version.iterdir()}
    for _ in range(300):
        path = rng.choice(sorted(originals))
        data = bytearray(originals[path])
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                v = fmt.open(version)
                for rank in v.ranks_here():
                    for array in v.rank(rank).values():
                        array.tobytes()
            except fmt.FormatError:
                pass
        path.write_bytes(originals[path])
