"""show, verify and export of captured files and of a version that needs another.

They run on the job `captured` of tests/golden.
"""

import os
import shutil
import struct

import pytest
import xxhash

from conftest import GOLDEN, ROOT

OLDER, NEWER = "v0000000000000012", "v0000000000000013"
SEGMENT = "node-0000000.segment"


def payload(begin, end, more=0):
    return bytes((7 * k + more) % 251 for k in range(begin, end))


def out_bin():
    data = bytearray(10_000)
    for at, begin, end in (
        (0, 0, 6000),
        (9000, 6000, 7000),
        (1000, 7000, 7500),
        (1400, 7500, 8000),
    ):
        data[at : at + end - begin] = payload(begin, end, 1)
    return bytes(data)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_show_lists_files_and_needs(world):
    world.captured()
    shown = world.json("show", "captured", 13)
    assert shown["needs"] == [12] and len(shown["regions"]) == 20
    files = {one["path"]: one for one in shown["files"]}
    assert list(files) == [
        "/run/heat/empty",
        "/run/heat/log \\xff.txt",
        "/run/heat/out.bin",
        "/run/sparse",
    ]
    out = files["/run/heat/out.bin"]
    assert (out["rank"], out["node"], out["mode"], out["bytes"], out["written_bytes"]) == (
        1,
        0,
        0o640,
        10_000,
        7000,
    )
    assert files["/run/sparse"]["writer"] == 0 and files["/run/sparse"]["written_bytes"] == 1000
    text = world.run("show", "captured", 13).stdout
    assert (
        "needs what lies in version 12" in text
        and "writer 0" in text
        and "/run/heat/out.bin" in text
    )
    assert (
        world.json("show", "captured", 12)["files"] == []
        and "FILE " not in world.run("show", "captured", 12).stdout
    )


def test_show_of_one_rank_has_its_files_alone(world):
    world.captured()
    shown = world.json("show", "captured", 13, "--rank", 1)
    assert [one["path"] for one in shown["files"]] == ["/run/heat/empty", "/run/heat/out.bin"]
    assert world.json("show", "captured", 13, "--rank", 0)["files"] == []


def test_verify_follows_the_need(world):
    world.captured()
    one = world.json("verify", "captured", 13)["versions"][0]
    assert one["good"] and (one["regions"], one["files"]) == (37, 5)
    assert one["bytes"] == world.json("show", "captured", 13)["payload_bytes"]


# A byte of rank 0's first chunk, which version 13 names in version 12: after the header and
# rank 1's first chunk.
def in_need(world):
    return 2 * 4096


def test_a_damaged_need_is_damage_that_names_it(world):
    job = world.captured()
    flip(job / OLDER / SEGMENT, in_need(world))
    one = world.json("verify", "captured", 13, "--no-mark", code=4)["versions"][0]
    assert (
        "rank 0, bytes 0 to 4095 of its object, which lie in version 12 (node 0) that it needs, "
        "do not match"
        in one["damaged"][0]["what"]
    )
    done = world.run("show", "captured", 13)
    assert done.returncode == 0  # it reads tables alone


@pytest.mark.parametrize(
    "harm, says",
    [
        (lambda path: path.unlink(), "it needs version 12, whose segment of node 0 is missing"),
        (
            lambda path: shutil.rmtree(path.parent),
            "it needs version 12, whose segment of node 0 is missing",
        ),
        (
            lambda path: flip(path, 40),
            "it needs version 12, whose segment of node 0 segment header: checksum",
        ),
        (
            lambda path: shutil.copyfile(path.parents[1] / NEWER / SEGMENT, path),
            "segment of node 0 belongs to another version",
        ),
    ],
)
def test_a_need_that_is_not_there(world, harm, says):
    job = world.captured()
    harm(job / OLDER / SEGMENT)
    one = world.json("verify", "captured", 13, code=4)["versions"][0]
    assert says in one["damaged"][0]["what"] and one["marked"], one
    assert says in (job / NEWER / "damaged").read_text()


def test_a_version_is_copied_with_what_it_needs(world):
    world.captured()
    shared = world.folder / "shared"
    shared.mkdir()
    done = world.run("copy", "captured", 13, "--to", shared)
    assert done.returncode == 0, done.stderr
    assert "copied captured version 12 first, which it needs" in done.stdout
    assert [path.parent.name for path in sorted(shared.glob("captured/v*/commit.*"))] == [
        OLDER, NEWER]
    for version in (12, 13):
        checked = world.json("verify", "captured", version, "--dir", shared)["versions"][0]
        assert checked["damaged"] == [], checked
    again = world.json("copy", "captured", 13, "--to", shared)
    assert not again["copied"] and again["needed"] == []


@pytest.mark.parametrize(
    "harm, says",
    [
        (lambda older: shutil.rmtree(older), "version 13 needs version 12"),
        (
            lambda older: (older / "damaged").write_text("a sector\n"),
            "version 13 needs version 12: captured version 12 is damaged: a sector",
        ),
        (lambda older: flip(older / SEGMENT, 4096), "captured version 12 in"),
    ],
)
def test_a_version_is_not_copied_without_what_it_needs(world, harm, says):
    harm(world.captured() / OLDER)
    shared = world.folder / "shared"
    shared.mkdir()
    done = world.run("copy", "captured", 13, "--to", shared)
    assert done.returncode != 0 and says in done.stderr, done.stderr
    assert not list(shared.glob("captured/v*/commit.*"))


def test_what_a_version_needs_is_not_removed(world):
    job = world.captured()
    done = world.run("rm", "captured", 12)
    assert done.returncode == 7 and "version 13 needs it" in done.stdout, done.stdout
    assert "--with-needing" in done.stdout and (job / OLDER / SEGMENT).exists()
    kept = world.json("rm", "captured", "--older-than", "1s")  # 13 is the newest
    assert kept["removed"] == [] and [one["version"] for one in kept["kept"]] == [12, 13]
    (job / OLDER / "damaged").write_text("a sector\n")
    kept = world.json("rm", "captured", "--damaged")
    assert kept["removed"] == [] and "version 13 needs it" in kept["kept"][0]["why"]


def test_what_a_version_needs_goes_with_it(world):
    job = world.captured()
    tried = world.json("rm", "captured", 12, "--with-needing", "--dry-run", code=7)
    assert tried["removed"] == [] and "newest" in tried["kept"][1]["why"], tried
    gone = world.json("rm", "captured", 12, "--with-needing", "--force")
    assert gone["removed"] == [12, 13] and not list(job.glob("v*"))
    world.captured()
    assert world.json("rm", "captured", 12, 13, "--force")["removed"] == [12, 13]
    world.captured()
    assert world.json("rm", "captured", "--all")["removed"] == [12, 13]
    world.captured()
    assert world.json("rm", "captured", 13, "--force")["removed"] == [13]
    assert world.json("rm", "captured", 12, "--force")["removed"] == [12]


def test_format_1_is_refused_with_the_release_that_wrote_it(world):
    shutil.copytree(GOLDEN.parent / "v1" / "golden", world.dir / "golden")
    says = "has format 1, which release 0.1.0 wrote while it was in development"
    shown = world.run("show", "golden", 12)
    assert shown.returncode == 4 and says in shown.stderr
    assert (
        world.json("verify", "golden", "--no-mark", code=4)["versions"][0]["damaged"][0][
            "what"
        ].count(says)
        == 1
    )
    assert world.json("ls", "golden")["versions"][0]["state"] == "damaged"


# --- export ---------------------------------------------------------------------------------------

needs_python = pytest.mark.skipif(
    not (ROOT / ".venv/bin/python").exists(), reason="the program starts .venv's Python"
)


@needs_python
def test_export_rebuilds_files(world):
    world.captured()
    done = world.json("export", "captured", "-o", "out")
    assert len(done["captured"]) == 4 and len(done["files"]) > 20
    root = os.fsencode(world.folder / "out/files")
    seen = os.stat(
        os.path.join(root, b"run/heat/out.bin")
    )  # before it is read: that changes its time
    assert (seen.st_mtime_ns, seen.st_atime_ns) == (1_795_000_020_250_000_000, -1)
    for path, mode, data in (
        (b"run/heat/out.bin", 0o640, out_bin()),
        (b"run/heat/empty", 0o600, b""),
        (b"run/heat/log \xff.txt", 0o644, payload(1000, 4000)),
    ):
        full = os.path.join(root, path)
        with open(full, "rb") as file:
            assert file.read() == data, path
        assert os.stat(full).st_mode & 0o7777 == mode
    sparse = os.stat(os.path.join(root, b"run/sparse"))
    assert sparse.st_size == 1 << 20 and sparse.st_blocks * 512 < 1 << 16
    assert not list((world.folder / "out").rglob("*.tmp"))


@needs_python
def test_names_of_exported_files_do_not_speak_to_the_terminal(world):
    world.captured()
    done = world.run("export", "captured", "-o", "o\x1b[31m")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert "o\\x1b[31m/files/run/heat/log \\xff.txt  " in done.stdout


@needs_python
def test_export_of_one_file(world):
    world.captured()
    done = world.json("export", "captured", 13, "--file", "/run/heat/out.bin", "-o", "out")
    assert [one["path"] for one in done["captured"]] == ["/run/heat/out.bin"] and done[
        "files"
    ] == []
    again = world.run("export", "captured", 13, "--file", "/run/heat/out.bin", "-o", "out")
    assert again.returncode == 1 and "exists already; --force replaces it" in again.stderr
    assert (
        world.run(
            "export", "captured", 13, "--file", "/run/heat/out.bin", "-o", "out", "--force"
        ).returncode
        == 0
    )
    done = world.run("export", "captured", 13, "--file", "/nowhere", "-o", "out")
    assert done.returncode == 3 and "no captured file '/nowhere'" in done.stderr
    of_rank = world.json("export", "captured", 13, "--rank", 1, "-o", "rank")
    assert [one["path"] for one in of_rank["captured"]] == ["/run/heat/empty", "/run/heat/out.bin"]


@needs_python
def test_export_of_a_damaged_need_leaves_no_file(world):
    job = world.captured()
    flip(job / NEWER / SEGMENT, 4096 + 100)  # of rank 1 or a writer: this version's own
    flip(job / OLDER / SEGMENT, in_need(world))
    done = world.run("export", "captured", 13, "--region", "all.byte", "-o", "out")
    assert done.returncode == 4 and "needs version 12" in done.stderr
    assert not list((world.folder / "out").rglob("*.tmp"))


def home_mark(version, run, node, job, files):
    """docs/format/home.md"""
    data = b"BKSTHOM1" + struct.pack("<IIQQII", 2, len(files), version, run, node, 0)
    data += job.encode().ljust(104, b"\0")
    for how, path, why in files:
        data += struct.pack("<BH", how, len(path)) + path + struct.pack("<H", len(why)) + why
    return data + struct.pack("<Q", xxhash.xxh3_64_intdigest(data))


def test_ls_files_says_which_are_at_home(world):
    job = world.captured()
    listed = world.json("ls", "captured", "--files")
    assert listed["not_home"] == 4
    files = {one["path"]: one for one in listed["files"]}
    assert files["/run/heat/out.bin"] == {
        "path": "/run/heat/out.bin",
        "bytes": 10_000,
        "job": "captured",
        "version": 13,
        "level": "local",
        "home": False,
        "why": "not yet",
    }
    run = 0x0102030405060709
    mark = job / NEWER / "node-0000000.home"
    waits, kept = (1, b"/run/heat/out.bin", b"no space"), (2, b"/run/sparse", b"a newer file")
    mark.write_bytes(home_mark(13, run, 0, "captured", [waits, kept]))
    files = {one["path"]: one for one in world.json("ls", "captured", "--files")["files"]}
    assert {path: (one["home"], one["why"]) for path, one in files.items()} == {
        "/run/heat/empty": (True, ""),
        "/run/heat/log \\xff.txt": (True, ""),
        "/run/heat/out.bin": (False, "waits: no space"),
        "/run/sparse": (False, "kept: a newer file"),
    }
    assert world.json("show", "captured", 13)["files_not_home"] == 2
    assert "2 files are not at home yet" in world.run("show", "captured", 13).stdout
    assert world.json("show", "captured", 12)["files_not_home"] == 0
    text = world.run("ls", "captured", "--files").stdout
    assert "2 files are not at home yet; `backstay export" in text and "waits: no space" in text
    mark.write_bytes(home_mark(13, run + 1, 0, "captured", []))  # of another run: says nothing
    assert world.json("ls", "captured", "--files")["not_home"] == 4
    mark.write_bytes(home_mark(13, run, 0, "captured", []))
    assert world.json("ls", "captured", "--files")["not_home"] == 0
    assert "not at home" not in world.run("ls", "captured", "--files").stdout


def test_ls_files_takes_the_jobs_of_each_host(world):
    job = world.captured()
    job.rename(job.parent / "heat.files.n1")  # its records name the other job
    done = world.run("ls", "heat", "--files")
    assert done.returncode != 0 and "heat.files.n1" not in done.stdout
    world.captured()
    assert world.run("ls", "--files").returncode == 2
    assert world.run("ls", "nobody", "--files").returncode == 3
    world.golden()
    assert world.run("ls", "golden", "--files").returncode == 3
