"""Streams with a real agent, through the Python package. Run by pytest in run_in_sandbox.py."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import backstay

MIB = 1 << 20
POOL_BYTES = 64 * MIB  # of the sandbox


@pytest.fixture
def job(monkeypatch, request):
    """A job of the test's own."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", request.node.name)
    monkeypatch.setenv("BACKSTAY_JOB", name)
    return name


def write(name, *pieces):
    with backstay.open_stream(name) as stream:
        for piece in pieces:
            stream.write(piece)


def stored(job):
    """The job's newest version, read from its files alone."""
    backstay.wait(backstay.version(), backstay.Level.LOCAL, 60)
    return backstay.open(pathlib.Path(os.environ["BACKSTAY_DIR"], job))


def comes_back(version, wanted):
    assert backstay.streams(version) == {name: len(data) for name, data in wanted.items()}
    for name, data in wanted.items():
        assert backstay.read_stream(version, name).tobytes() == data, name


def test_ten_thousand_come_back_beside_arrays(job):
    seed = int(os.environ.get("BACKSTAY_TEST_SEED", "1"))
    source = random.Random(seed)
    wanted = {f"cell {i} ✓": source.randbytes(source.randrange(400)) for i in range(10_000)}
    u = np.arange(100_000.0)
    with backstay.init():
        backstay.protect("u", u)
        for name, data in wanted.items():
            write(name, data)
        version = backstay.checkpoint()
        comes_back(version, wanted)
        opened = stored(job)
        assert dict(opened.rank(0).streams).keys() == wanted.keys()
        assert all(opened[name].tobytes() == data for name, data in wanted.items())
        assert opened.verify() > sum(map(len, wanted.values()))
        np.testing.assert_array_equal(opened["u"], u)
    with backstay.init():  # another process would do no more: names and bytes come from the agent
        again = np.zeros_like(u)
        backstay.protect("u", again)
        assert backstay.restart() == version
        np.testing.assert_array_equal(again, u)
        comes_back(version, wanted)
        assert backstay.checkpoint() == version + 1
        assert backstay.streams(version + 1) == {}


def test_several_at_a_time_and_larger_than_the_pool(job):
    source = random.Random(2)
    block = source.randbytes(3 * MIB + 17)
    parts = {"big": [], "a": [], "b": [], "none": []}
    with backstay.init():
        open_ones = {name: backstay.open_stream(name) for name in parts}
        while sum(map(len, parts["big"])) < POOL_BYTES + 5 * MIB:
            for name in source.sample(["big", "a", "b"], 3):
                size = len(block) if name == "big" else source.randrange(1, 5000)
                piece = block[:size] if name == "big" else source.randbytes(size)
                open_ones[name].write(piece)
                parts[name].append(piece)
        for stream in open_ones.values():
            stream.close()
        version = backstay.checkpoint()
        wanted = {name: b"".join(pieces) for name, pieces in parts.items()}
        comes_back(version, wanted)
        half = backstay.read_stream(version, "big", 10 * MIB + 1, 5 * MIB)
        assert half.tobytes() == wanted["big"][10 * MIB + 1:15 * MIB + 1]
        opened = stored(job)
        assert opened["big"].tobytes() == wanted["big"] and opened["none"].size == 0
        assert opened.verify()


def test_questions_and_reads_between_writes(job):
    u = np.arange(1000.0)
    with backstay.init():
        backstay.protect("u", u)
        write("first", b"1" * 5000)
        first = backstay.checkpoint()
        stream = backstay.open_stream("second")
        for i in range(20):
            stream.write(np.full(100_000, i, np.uint8))
            assert backstay.test(first) >= backstay.Level.CAPTURED
            backstay.wait(first, backstay.Level.LOCAL, 60)
            assert backstay.read_stream(first, "first", i, 10).tobytes() == b"1" * 10
            out = np.zeros(1000)
            np.testing.assert_array_equal(backstay.read_region(first, "u", out), u)
            backstay.due()
        stream.close()
        second = backstay.checkpoint()
        data = backstay.read_stream(second, "second").reshape(20, -1)
        np.testing.assert_array_equal(data, np.repeat(np.arange(20), 100_000).reshape(20, -1))


def test_read_region_reads_a_whole_stream(job):
    with backstay.init():
        write("s", np.arange(10.0))
        version = backstay.checkpoint()
        np.testing.assert_array_equal(backstay.read_region(version, "s", np.zeros(10)),
                                      np.arange(10.0))
        with pytest.raises(backstay.RegionMismatch, match="80 bytes"):
            backstay.read_region(version, "s", np.zeros(9))
        with pytest.raises(backstay.NotFound):
            backstay.read_region(version, "t", np.zeros(9))


def test_misuse_is_refused_and_costs_the_version_only(job):
    u = np.zeros(3)
    with backstay.init():
        backstay.protect("u", u)
        write("kept", b"kept")
        version = backstay.checkpoint()
        stream = backstay.open_stream("s")
        with pytest.raises(backstay.DuplicateName, match="since the last checkpoint"):
            backstay.open_stream("s")
        with pytest.raises(backstay.DuplicateName, match="protected"):
            backstay.open_stream("u")
        with pytest.raises(backstay.DuplicateName, match="stream"):
            backstay.protect("s", np.zeros(2))
        with pytest.raises(backstay.InvalidArgument):
            backstay.open_stream("")
        with pytest.raises(backstay.TooLarge):
            backstay.open_stream("x" * 201)
        stream.write(b"x" * 2 * MIB)
        with pytest.raises(backstay.WrongState, match="'s' is open"):
            backstay.checkpoint()
        with pytest.raises(backstay.WrongState, match="no stream"):
            stream.write(b"y")
        write("s", b"again")
        stream = backstay.open_stream("t")
        stream.close()
        for call in (stream.close, lambda: stream.write(b"y")):
            with pytest.raises(backstay.WrongState, match="'t' is closed"):
                call()
        newer = backstay.checkpoint()
        assert newer > version
        comes_back(newer, {"s": b"again", "t": b""})
        comes_back(version, {"kept": b"kept"})
        with pytest.raises(backstay.RegionMismatch, match="5 bytes"):
            backstay.read_stream(newer, "s", 3, 3)
        with pytest.raises(backstay.NotFound, match="no stream 'kept'"):
            backstay.read_stream(newer, "kept", 0, 1)
        with pytest.raises(backstay.NotFound):
            backstay.streams(newer + 5)
        for wrong in ("text", 7, np.zeros((4, 4))[:, 1]):
            with pytest.raises(TypeError, match="data"):
                stream.write(wrong)


def test_a_restart_drops_what_no_checkpoint_took(job):
    u = np.ones(1000)
    with backstay.init():
        backstay.protect("u", u)
        write("s", b"old")
        version = backstay.checkpoint()
        stream = backstay.open_stream("s")
        stream.write(b"x" * 3 * MIB)
        assert backstay.restart() == version
        with pytest.raises(backstay.WrongState):
            stream.close()
        write("s", b"new")
        comes_back(backstay.checkpoint(), {"s": b"new"})


@pytest.mark.parametrize("end", ["finalize", "abandon", "kill"])
def test_without_a_checkpoint_the_old_version_stays(job, end):
    program = f"""
import os, signal, numpy as np, backstay
u = np.ones(1000)
try:
    with backstay.init():
        backstay.protect("u", u)
        with backstay.open_stream("s") as s: s.write(b"old")
        backstay.checkpoint()
        u[:] = 2
        s = backstay.open_stream("s")
        for i in range(100): s.write(b"x" * 100_000)
        if {end!r} == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if {end!r} == "abandon": raise RuntimeError
except RuntimeError: pass
"""
    code = subprocess.run([sys.executable, "-c", program], timeout=60).returncode
    assert code == (-signal.SIGKILL if end == "kill" else 0)
    u = np.zeros(1000)
    with backstay.init():
        backstay.protect("u", u)
        assert backstay.restart() == 1
        assert u[0] == 1
        comes_back(1, {"s": b"old"})
        write("s", b"new")
        comes_back(backstay.checkpoint(), {"s": b"new"})


def test_the_agent_dies_in_the_middle(job):
    u = np.ones(10)
    with backstay.init():
        backstay.protect("u", u)
        write("s", b"old")
        backstay.checkpoint()
        backstay.wait(1, backstay.Level.LOCAL, 60)
        stream = backstay.open_stream("s")
        stream.write(b"x" * 100)
        end_agent()
        with pytest.raises(backstay.AgentLost):
            for _ in range(100):
                stream.write(b"x" * MIB)
        with pytest.raises(backstay.AgentLost):
            stream.close()
        with pytest.raises(backstay.AgentLost):
            backstay.checkpoint()
        write("s", b"new")
        version = backstay.checkpoint()
        comes_back(version, {"s": b"new"})
        comes_back(1, {"s": b"old"})
        # The same where no write has noticed it.
        write("s", b"lost")
        end_agent()
        with pytest.raises(backstay.AgentLost):
            backstay.checkpoint()
        write("s", b"newest")
        comes_back(backstay.checkpoint(), {"s": b"newest"})


def end_agent():
    import select
    import socket
    import struct

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        probe.connect(os.environ["BACKSTAY_AGENT_SOCKET"])
        raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid = struct.unpack("3i", raw)[0]
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([handle], [], [], 30)[0]
    os.close(handle)
