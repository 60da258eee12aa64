"""Waiting, and the agents of a test. Standard library only."""

import contextlib
import os
import select
import signal
import time
from pathlib import Path


def wait_for(condition, what, seconds=60):
    """What condition() gives once it is true; fails loudly instead of waiting without end."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come in time")
        time.sleep(0.01)
    return result


def wait_for_end(pid, what, seconds=60):
    """Its connections are closed then too."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([process], [], [], seconds)[0]:
            raise AssertionError(f"{what}, process {pid}, did not end in time")
    finally:
        os.close(process)


def processes():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                pass  # ended meanwhile


def agents_at(socket):
    """Living agents on this socket, with any starter."""
    return [pid for pid,
            words in processes() if words[0].endswith(b"backstayd") and os.fsencode(socket)
            in words]


def resident_peak_bytes(pid):
    """The most memory that it ever had in use, the pool that it maps included; 0 if it has ended.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    peaks = [int(line.split()[1]) << 10 for line in status.splitlines()
             if line.startswith("VmHWM:")]
    return max(peaks, default=0)


def end_agents(socket, number=signal.SIGTERM, seconds=60):
    for pid in agents_at(socket):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        wait_for_end(pid, "an agent", seconds)
