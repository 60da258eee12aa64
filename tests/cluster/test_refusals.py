"""What the tool says where it cannot work. Needs no root; runs everywhere."""

import os
import subprocess
from pathlib import Path

import pytest

MINI = Path(__file__).resolve().parent / "mini"


@pytest.fixture(scope="session", autouse=True)
def able():
    """Instead of conftest's: these tests make no cluster."""


def run(*words, **options):
    done = subprocess.run([MINI, *words], capture_output=True, text=True, timeout=30, **options)
    return done.returncode, done.stdout + done.stderr


def test_help_has_examples():
    code, output = run("--help")
    assert code == 0 and "mini up 4" in output and "/mnt/local" in output
    for command in ("up", "down", "status", "exec", "shell", "kill", "boot", "cut", "heal",
                    "shape", "unshape",
                    "lose-disk", "restore-disk", "slow-disk", "slow-shared", "slurm", "mpirun"):
        assert run(command, "--help")[0] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_without_root():
    # A user namespace without a map: user nobody, who can still read a checkout in a folder of
    # root's.
    done = subprocess.run(["unshare", "--user", MINI, "up", "2"], capture_output=True, text=True)
    assert done.returncode == 2 and "needs root" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="this is said to root only")
def test_names_what_is_missing(tmp_path):
    from minicluster import checks, errors
    with pytest.raises(errors.MissingFeature, match="apt-get install no-such-package"):
        checks.require_tools({"no-such-program": "no-such-package", "sh": "dash"})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a cluster to be begun")
def test_an_up_that_fails_leaves_nothing():
    """No file can be so large."""
    code, output = run("up", "2", "--disk", "loop", "--disk-size", "999999999G")
    assert code != 0 and (code == 2 or "truncate" in output)
    assert "Traceback" not in output and not Path(os.environ["BACKSTAY_MINI_DIR"]).exists()


def test_bad_arguments():
    assert run("up", "0")[0] == 2 and "not a number of hosts" in run("up", "none")[1]
    assert run("up", "2", "--disk-size", "big")[0] == 2 and "500M or 2G" in run("up", "2",
        "--disk-size", "big")[1]
    if os.geteuid() == 0:
        code, output = run("status", "--name", "no-such")
        assert code == 1 and "mini up 4 --name no-such" in output
        code, output = run("status", "--name", "../x")
        assert code == 1 and "cannot name a cluster" in output
