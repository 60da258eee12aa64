"""copy: a version to another folder and back, from a real version (tests/golden), without an agent.
"""

import fcntl
import os
import shutil

import pytest
from test_versions import flip

SEGMENT = "golden/v0000000000000012/node-0000000.segment"


@pytest.fixture
def shared(world):
    folder = world.folder / "shared"
    folder.mkdir()
    return folder


def test_there_and_back(world, shared):
    folder = world.golden()
    done = world.json("copy", "golden", "--to", shared)
    assert (done["version"], done["copied"], done["payload_bytes"]) == (12, True, 29977)
    copied = shared / "golden" / folder.name
    assert sorted(p.name for p in copied.iterdir()) == ["commit.durable", "node-0000000.manifest",
                                                        "node-0000000.segment"]
    assert (copied / "node-0000000.manifest").read_bytes() == (folder
        / "node-0000000.manifest").read_bytes()
    assert world.json("ls", "golden", "--dir", shared)["versions"][0]["level"] == "durable"
    assert world.json("verify", "golden", "--dir", shared)["versions"][0]["good"]
    # The node's disk is lost; everything comes back.
    shutil.rmtree(world.dir)
    assert world.json("copy", "golden", 12, "--from", shared)["copied"]
    assert world.json("ls", "golden")["versions"][0]["level"] == "local"
    assert world.json("verify", "golden")["versions"][0]["good"]
    shown = world.json("show", "golden", "--dir", shared)
    assert shown["level"] == "durable" and shown["where"] == ["durable"]


def test_the_copy_opens_in_python(world, shared):
    pytest.importorskip("numpy")
    import sys
    from conftest import ROOT
    sys.path.insert(0, str(ROOT / "python"))
    from backstay import format as reader
    world.golden()
    assert world.run("copy", "golden", "--to", shared).returncode == 0
    version = reader.open(shared / "golden" / "v0000000000000012")
    assert version.level == "durable" and version["u"] is not None


def test_twice_copies_once(world, shared):
    world.golden()
    assert world.json("copy", "golden", "--to", shared)["copied"]
    assert not world.json("copy", "golden", "--to", shared)["copied"]
    assert "already" in world.run("copy", "golden", "--to", shared).stdout


def test_what_an_interruption_left_is_no_version(world, shared):
    world.golden()
    for point in range(1, 6):
        done = world.run("copy", "golden", "--to", shared,
                         env={"BACKSTAY_FAILPOINT": f"copy.{point}=kill"})
        assert done.returncode == -9, f"copy.{point} was not passed"
        known = world.json("ls", "golden", "--dir", shared)["versions"][0]["state"]
        assert known == ("complete" if point >= 4 else "incomplete")
        assert world.json("copy", "golden", "--to", shared)["copied"] == (point < 4)
        assert world.json("verify", "golden", "--dir", shared)["versions"][0]["good"]
        shutil.rmtree(shared / "golden")


def test_a_damaged_version_is_not_copied(world, shared):
    world.golden()
    flip(world.dir / SEGMENT, 5000)
    done = world.run("copy", "golden", "--to", shared)
    assert done.returncode == 4 and "was not copied" in done.stderr
    assert world.run("ls", "golden", "--dir", shared).returncode == 3, "nothing is left of it"
    assert world.run("verify", "golden").returncode == 4
    assert world.run("copy", "golden", 12, "--to", shared).returncode == 4, "set aside"
    assert world.run("copy", "golden", "--to",
                     shared).returncode == 3, "no complete version is left"


def test_a_damaged_copy_is_replaced_once_it_was_set_aside(world, shared):
    world.golden()
    assert world.run("copy", "golden", "--to", shared).returncode == 0
    flip(shared / SEGMENT, 5000)
    assert world.run("verify", "golden", "--dir", shared).returncode == 4
    assert world.json("copy", "golden", "--to", shared)["copied"]
    assert world.json("verify", "golden", "--dir", shared)["versions"][0]["good"]


def test_a_job_that_is_served_there_is_left_alone(world, shared):
    world.golden()
    assert world.run("copy", "golden", "--to", shared).returncode == 0
    with open(world.dir / "golden" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = world.run("copy", "golden", "--from", shared)
        assert done.returncode == 7 and "another agent" in done.stderr


@pytest.mark.parametrize("words, code, said", [
    (["golden"], 2, "--to DIR"),
    (["golden", "--to", "missing"], 2, "no folder"),
    (["golden", "--to", "versions"], 2, "the storage folder itself"),
    (["golden", "--to", "versions/golden"], 2, "lies in the storage folder"),
    (["golden", "--to", "a", "--from", "b"], 2, "excludes"),
    (["golden", 13, "--to", "shared"], 3, "no version 13"),
    (["other", "--to", "shared"], 3, "jobs there: golden"),
    (["golden", 0, "--to", "shared"], 2, "count from 1"),
])
def test_bad_input(world, shared, words, code, said):
    world.golden()
    done = world.run("copy", *words)
    assert done.returncode == code and said in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(world, shared):
    world.golden()
    shared.chmod(0o500)
    done = world.run("copy", "golden", "--to", shared)
    assert done.returncode == 1 and str(shared) in done.stderr
