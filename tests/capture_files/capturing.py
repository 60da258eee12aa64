"""Runs programs with the library that captures files, as `backstay exec` would."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from processes import processes, wait_for_end  # noqa: E402


class Capture:
    """`library`: libbackstay_files.so. Files below `folder` are captured."""

    def __init__(self, library, folder, **variables):
        self.variables = {"LD_PRELOAD": os.path.abspath(library),
                          "BACKSTAY_CAPTURE": f"{os.path.abspath(folder)}/**", **variables}

    def environment(self):
        return {**os.environ, **self.variables}

    def settle(self):
        """Without a collector each file is at its place."""

    def run(self, *command, **options):
        return subprocess.run([str(part) for part in command], env=self.environment(),
                              check=False, **options)


class World:
    """An agent and collectors of their own, by `program` (backstay); they end with this."""

    def __init__(self, program, **variables):
        self.program = os.path.abspath(program)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="backstay-cf-", dir="/tmp"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTAY_")}
        self.env.update(HOME=str(self.folder), BACKSTAY_DIR=str(self.folder / "versions"),
                        BACKSTAY_AGENT_SOCKET=str(self.folder / "agent" / "s"),
                        BACKSTAY_POOL_SIZE_MIB="64", BACKSTAY_POOL_BUFFER_MIB="1",
                        BACKSTAY_CAPTURE_POOL_KIB="0")
        self.env.update(variables)
        self.env.pop("XDG_RUNTIME_DIR", None)

    def __enter__(self):
        return self

    def words(self, folder, *command, job="test"):
        return [self.program, "exec", "--job", job, "--capture-files",
                f"{os.path.abspath(folder)}/**", "--", *map(str, command)]

    def run(self, folder, *command, **options):
        """Returns once the files are at their places, unless the program is killed."""
        return subprocess.run(self.words(folder, *command), env=self.env, check=False,
                              cwd=options.pop("cwd", self.folder), **options)

    def pids(self, name):
        """Of programs with this name that serve this world."""
        here = os.fsencode(self.folder)
        return [pid for pid, words in processes()
                if words[0].endswith(name.encode()) and any(here in word for word in words)]

    def kill(self, name):
        pids = self.pids(name)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_for_end(pid, name)
        return len(pids)

    def log(self):
        logs = [self.folder / "agent" / name for name in ("collector.log", "agent.log")]
        return "".join(log.read_text() for log in logs if log.exists())

    def __exit__(self, *_):
        self.kill("backstay-collector")
        self.kill("backstayd")
        shutil.rmtree(self.folder, ignore_errors=True)


class Pooled:
    """As Capture, with a collector of the world."""

    def __init__(self, world, folder, **variables):
        self.world, self.folder = world, folder
        printed = world.run(folder, "/usr/bin/env", "-0", stdout=subprocess.PIPE).stdout
        self.variables = dict(line.split("=", 1) for line in printed.decode().split("\0") if line)
        self.variables.update(variables)
        # A shell that a test starts would be taken for the first process of the tree else.
        self.variables.pop("BACKSTAY_CAPTURE_ROOT")
        assert "BACKSTAY_COLLECTOR" in self.variables, "no collector was started"

    def environment(self):
        return dict(self.variables)

    def settle(self):
        """The first process of a tree waits at its end."""
        done = self.world.run(self.folder, "true")
        assert done.returncode == 0, done

    run = Capture.run


def temporary_files(folder):
    """What the library leaves only where a process was killed."""
    return [path for path in folder.rglob(".backstay-*")]
