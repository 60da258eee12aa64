"""The real programs in a world of their own: home, socket and versions below one temporary folder.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))  # processes.py

from processes import processes, wait_for_end  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BACKSTAY_TEST_PROGRAM", str(ROOT / "bin" / "backstay"))
GOLDEN = ROOT / "tests" / "golden" / "v2"


class World:
    """`run(...)` starts backstay; the folder goes away afterwards, and so does an agent."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.dir = self.folder / "versions"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTAY_")}
        self.env.update(
            HOME=str(self.folder),
            XDG_CACHE_HOME=str(self.folder / "cache"),
            BACKSTAY_DIR=str(self.dir),
            BACKSTAY_AGENT_SOCKET=str(self.folder / "agent" / "s"),
            BACKSTAY_POOL_SIZE_MIB="32",
            BACKSTAY_AGENT_IDLE_EXIT_S="60",
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        )
        self.env.pop("XDG_RUNTIME_DIR", None)

    def run(self, *words, env=None, **more):
        return subprocess.run(
            [PROGRAM, *map(str, words)], env={**self.env, **(env or {})},
            cwd=more.pop("cwd", self.folder),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **more)

    def popen(self, *words, env=None, **more):
        return subprocess.Popen(
            [PROGRAM, *map(str, words)], env={**self.env, **(env or {})}, cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **more)

    def json(self, *words, code=0, **more):
        done = self.run(*words, "--json", **more)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def golden(self, job="golden"):
        """A copy of the golden version; returns its folder."""
        shutil.copytree(GOLDEN / "golden", self.dir / job, dirs_exist_ok=True)
        return self.dir / job / "v0000000000000012"

    def captured(self):
        """A copy of the job with captured files; returns its folder.

        Its version 13 needs version 12.
        """
        shutil.copytree(GOLDEN / "captured", self.dir / "captured", dirs_exist_ok=True)
        return self.dir / "captured"


def press(running, seconds=40):
    """Asks `backstay run` to end, again and again: each time it goes one step harder."""
    deadline = time.monotonic() + seconds
    while running.poll() is None:
        if time.monotonic() > deadline:
            running.kill()
            raise AssertionError("`backstay run` does not end")
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            pass


@pytest.fixture
def world():
    folder = tempfile.mkdtemp(prefix="backstay-cli-", dir="/tmp")  # short: a socket lies in it
    made = World(folder)
    yield made
    if (made.folder / "agent" / "s").exists():
        made.run("agent", "stop", "--now")
    for pid, words in processes():  # collectors of captured files
        if words[0].endswith(b"backstay-collector") and folder.encode() in words[1]:
            os.kill(pid, signal.SIGKILL)
            wait_for_end(pid, "the collector")
    shutil.rmtree(folder, ignore_errors=True)
