"""show, verify and export of versions with streams, as programs write them."""

import os
import subprocess

import pytest

from conftest import ROOT

JOB = os.environ.get("BACKSTAY_TEST_STREAMS_JOB", "")
pytestmark = pytest.mark.skipif(not JOB, reason="the program with streams was not built")


def bytes_of(cell, version):
    return bytes([(version + cell) % 256]) * (300 * cell)


@pytest.fixture
def saved(world):
    """Two versions of 30 streams."""
    world.env["BACKSTAY_JOB"] = "cells"
    world.env["BACKSTAY_AGENT_PROGRAM"] = os.environ["BACKSTAY_TEST_AGENT"]
    done = subprocess.run([JOB, "30", "2"], env=world.env, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return world


def segment(world, version):
    return world.dir / "cells" / f"v{version:016d}" / "node-0000000.segment"


def verified(world, version, *more):
    one, = world.json("verify", "cells", version, *more)["versions"]
    return one["good"]


def test_show_lists_streams_by_their_names(saved):
    shown = saved.json("show", "cells")
    assert shown["streams"] == [{"name": f"cell {i}", "ranks": 1, "bytes": 300 * i}
                                for i in range(30)]
    assert [region["name"] for region in shown["regions"]] == ["u"], "they are no array"
    text = saved.run("show", "cells").stdout
    assert "cell 19" in text and "cell 20" not in text
    assert "and 10 names (--json lists all): 30 streams of" in text.replace(" more", "")


def test_verify_reads_every_byte_of_a_stream(saved):
    assert verified(saved, 2)
    path = segment(saved, 2)
    content = path.read_bytes()
    at = content.index(bytes_of(17, 2)[:100])
    damaged = bytearray(content)
    damaged[at + 50] ^= 0x20
    path.write_bytes(damaged)
    bad = saved.run("verify", "cells", 2)
    assert bad.returncode != 0 and "checksum" in bad.stdout + bad.stderr
    assert verified(saved, 1)


def test_export_writes_a_stream_as_a_file_of_its_bytes(saved):
    pytest.importorskip("numpy")
    pytest.importorskip("typer")
    if not (ROOT / ".venv/bin/python").exists():
        pytest.skip("the program starts .venv's Python")
    out = saved.folder / "out"
    for version in (1, 2):
        done = saved.run("export", "cells", version, "--region", "cell 7", "--region", "cell 0",
                         "-o", out / str(version))
        assert done.returncode == 0, done.stderr
        found = {path.read_bytes() for path in (out / str(version)).iterdir()}
        assert found == {bytes_of(7, version), b""}, list((out / str(version)).iterdir())
    assert saved.run("export", "cells", 2, "-o", out / "all").returncode == 0
    contents = [path.read_bytes() for path in (out / "all").iterdir()]
    for cell in range(30):
        assert bytes_of(cell, 2) in contents
    assert saved.run("export", "cells", "--region", "cell 30", "-o", out).returncode == 3


def test_a_copy_of_a_version_has_its_streams(saved):
    there = saved.folder / "there"
    there.mkdir()
    assert saved.run("copy", "cells", 2, "--to", there).returncode == 0
    assert saved.json("show", "cells", 2, "--dir", there)["streams"][29]["bytes"] == 300 * 29
    assert verified(saved, 2, "--dir", there)
