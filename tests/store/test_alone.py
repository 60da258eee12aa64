"""A version that src/store has written without an agent is one for everybody."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ALONE = os.environ["STORE_ALONE"]
ROOT = Path(__file__).resolve().parents[2]
RESTART = """
import backstay, numpy
u = numpy.zeros(100_000)
with backstay.init():
    backstay.protect("u", u)
    assert backstay.restart() == 1
numpy.save("u.npy", u)
"""


def expected(rank):
    return rank + 1e-6 * numpy.arange(100_000)


@pytest.fixture
def run(tmp_path):
    world = {"BACKSTAY_DIR": tmp_path / "versions", "BACKSTAY_AGENT_SOCKET": tmp_path / "agent/s",
             "BACKSTAY_JOB_NAME": "alone", "BACKSTAY_POOL_SIZE_MIB": "32",
             "BACKSTAY_AGENT_IDLE_EXIT_S": "1",
             "XDG_CACHE_HOME": tmp_path, "HOME": tmp_path}
    env = {**os.environ, **{key: str(value) for key, value in world.items()}}

    def run(*words):
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=env,
                              cwd=tmp_path, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_verify_and_a_restart_take_it(run, tmp_path):
    run(ALONE, "write", tmp_path / "versions", 1)
    assert "every byte is right" in run(ROOT / "bin/backstay", "verify", "alone")
    run(sys.executable, "-c", RESTART)
    assert (numpy.load(tmp_path / "u.npy") == expected(0)).all()


def test_one_array_of_another_rank(run, tmp_path):
    run(ALONE, "write", tmp_path / "versions", 3)
    assert "every byte is right" in run(ROOT / "bin/backstay", "verify", "alone")
    read = numpy.array(run(ALONE, "read", tmp_path / "versions", 2).split(), float)
    assert numpy.allclose(read, expected(2), rtol=1e-5)
