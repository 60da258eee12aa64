"""An MPI job whose ranks run under the boot program: started, saved, killed, brought back.

Standard library only.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

DEADLINE_S = 60
RANK = Path(__file__).resolve().parent / "rank.py"


def environment(**changes):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BACKSTAY_")}
    return {
        **kept,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        **changes,
    }


class Refused(Exception):
    pass


class Line:
    """The control line of one rank's boot program."""

    def __init__(self, connection):
        self.connection = connection
        self.connection.settimeout(DEADLINE_S)
        self.file = connection.makefile()
        number, pid = self.file.readline().split()
        self.number, self.pid = int(number), int(pid)

    def ask(self):
        self.connection.sendall(b"c")

    def answer(self):
        while True:
            text = self.file.readline()
            if text != "again\n":
                break
            self.ask()
        if not text.startswith("ok "):
            raise Refused(text.removeprefix("refused ").strip())
        return dict(zip(("bytes", "pages", "stopped_us"), map(int, text.split()[1:4]), strict=True))

    def close(self):
        self.file.close()
        self.connection.close()


class Job:
    """One life of all ranks. `options`: of each boot program, with {rank} in them."""

    def __init__(self, mpirun, ranks, boot, options, cwd, **changes):
        self.cwd = Path(cwd)
        self.lines = []
        with tempfile.TemporaryDirectory() as scratch, socket.socket(socket.AF_UNIX) as door:
            path = f"{scratch}/door"
            door.bind(path)
            door.listen(64)
            door.settimeout(DEADLINE_S)
            command = [mpirun, "-n", ranks, sys.executable, RANK, path, boot, "--control"]
            self.process = subprocess.Popen(
                [*map(str, command), "{control}", *map(str, options)],
                cwd=cwd,
                env=environment(**changes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for _ in range(ranks):
                self.lines.append(Line(door.accept()[0]))
        self.lines.sort(key=lambda line: line.number)

    def save(self):
        for line in self.lines:
            line.ask()
        return [line.answer() for line in self.lines]

    def kill(self):
        """Ranks first, as a lost connection to mpirun is something that MPI sees. The launcher ends
        the others when it sees that one has ended."""
        for line in self.lines:
            with contextlib.suppress(ProcessLookupError):
                os.kill(line.pid, signal.SIGKILL)
        self.end()

    def end(self):
        """(code, what all of them have printed)"""
        try:
            out, _ = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, _ = self.process.communicate()
            raise AssertionError(f"the job does not end: {out}") from None
        finally:
            for line in self.lines:
                line.close()
        return self.process.returncode, out.decode(errors="replace")
