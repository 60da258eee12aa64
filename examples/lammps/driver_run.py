"""One run of lammps_driver: starts it, reads its events, remembers them."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Version:
    number: int
    step: int
    save_s: float
    blocked_s: float


@dataclass
class Restart:
    version: int
    step: int
    at: float  # seconds on the monotonic clock


@dataclass
class DriverRun:
    """Events of one command, which may start the driver more than once (backstay run)."""

    command: list[str]
    environment: dict[str, str]
    folder: str
    atoms: int = 0
    pids: list[int] = field(default_factory=list)
    thermo: dict[int, tuple[str, ...]] = field(default_factory=dict)  # step -> values as printed
    # The same, of steps computed twice.
    repeated: dict[int, tuple[str, ...]] = field(default_factory=dict)
    reached_at: dict[int, float] = field(default_factory=dict)  # step -> when it was last reached
    versions: list[Version] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)  # what backstay run and others said
    done_step: int = -1
    exit_code: int = -1
    seconds: float = 0

    def run(self, on_event: Callable[["DriverRun", str, list[str]], None]) -> None:
        """Blocks until the command ends; calls back after each event."""
        began = time.monotonic()
        with subprocess.Popen(self.command, env=self.environment, cwd=self.folder,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            listener = threading.Thread(target=self._listen, args=(process, on_event))
            listener.start()
            try:
                for line in process.stdout:
                    self._take(line.split(), on_event)
            except BaseException:
                os.killpg(process.pid, signal.SIGTERM)
                raise
            finally:
                listener.join()
        self.exit_code = process.returncode
        self.seconds = time.monotonic() - began

    def _listen(self, process, on_event) -> None:
        for line in process.stderr:
            self.messages.append(line.rstrip("\n"))
            if line.startswith("backstay run: "):
                on_event(self, "message", [line.strip()])

    def _take(self, words: list[str], on_event) -> None:
        kind, values = (words[0], words[1:]) if words else ("", [])
        if kind == "pids":
            self.pids = [int(pid) for pid in values]
        elif kind == "start":
            self.atoms = int(values[3])
        elif kind == "restart":
            self.restarts.append(Restart(int(values[1]), int(values[3]), time.monotonic()))
        elif kind == "thermo":
            self._take_thermo(int(values[0]), tuple(values[1:]))
        elif kind == "version":
            self.versions.append(Version(int(values[0]), int(values[2]), float(values[4]),
                                         float(values[6])))
        elif kind == "done":
            self.done_step = int(values[1])
        else:
            self.messages.append(" ".join(words))
            return
        on_event(self, kind, values)

    def _take_thermo(self, step: int, values: tuple[str, ...]) -> None:
        self.reached_at[step] = time.monotonic()
        if step in self.thermo:
            self.repeated[step] = values
        else:
            self.thermo[step] = values

    def kill(self, rank: int) -> None:
        """SIGKILL to one rank, whose process id the driver itself reported."""
        os.kill(self.pids[rank], signal.SIGKILL)
