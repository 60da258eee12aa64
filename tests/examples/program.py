"""A running example program: its events, its ranks, its end."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

DEADLINE_S = 120


def children(pid: int) -> list[int]:
    """Direct children of a process, from /proc."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # it ended meanwhile
            pass
    return found


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


class Program:
    """`command` is started at once; lines of its stdout are events. Leaving the `with` block ends
    it.
    """

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path):
        self.lines: list[str] = []
        self.command = command
        self.process = subprocess.Popen(command, env=environment, cwd=folder,
                                        stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self._late = threading.Timer(DEADLINE_S, self.process.kill)
        self._late.start()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_) -> None:
        self._late.cancel()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def next_line(self, start: str) -> str:
        """Reads until a line begins with `start`."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(start):
                return self.lines[-1]
        raise AssertionError(f"no line '{start} ...' before the end of the program\n{self.report()}")

    def ranks(self, executable: str) -> list[int]:
        """Process ids of the ranks: the command itself or descendants of it that run this file."""
        def runs_it(pid: int) -> bool:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                return False
            return executable.encode() in words[:2] and b"mpirun" not in words[0] and b"mpiexec" not in words[0]
        return [pid for pid in (self.process.pid, *descendants(self.process.pid)) if runs_it(pid)]

    def kill_rank(self, executable: str) -> None:
        os.kill(self.ranks(executable)[-1], signal.SIGKILL)

    def end(self) -> int:
        """Reads the rest and returns the exit code."""
        self.lines += [line.rstrip("\n") for line in self.process.stdout]
        code = self.process.wait()
        self._late.cancel()
        return code

    def event(self, start: str) -> list[str]:
        """The words of the last line that begins with `start`."""
        found = [line.split() for line in self.lines if line.startswith(start)]
        if not found:
            raise AssertionError(f"no line '{start} ...'\n{self.report()}")
        return found[-1]

    def report(self) -> str:
        return "\n".join([f"--- {' '.join(self.command)}", *self.lines])
