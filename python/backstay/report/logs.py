"""The files of event logs: a job's own folder, and copies of other nodes' logs."""

import os
import pathlib
import stat

from ..format.errors import DamagedError
from ..format.node import open_file
from ..plan import files as disk

NAMES = ("events.1.jsonl", "events.jsonl")  # older first


class LogError(Exception):
    """A log that cannot be used. `missing`: there is no file. `mismatch`: it is another job's."""

    def __init__(self, message: str, missing: bool = False, mismatch: bool = False):
        super().__init__(message)
        self.missing, self.mismatch = missing, mismatch


def has_log(folder: pathlib.Path) -> bool:
    """Whether an agent has written a log in this folder of a job."""
    return any((folder / name).exists() for name in NAMES)


def of_job(folder: pathlib.Path) -> list[pathlib.Path]:
    """The log of a job's folder. Raises LogError if there is none."""
    found = [folder / name for name in NAMES if (folder / name).exists()]
    if not found:
        raise LogError(f"{folder / NAMES[-1]}: no such file; the agent writes it while the job runs", missing=True)
    return found


def named(path: pathlib.Path) -> list[pathlib.Path]:
    """A file, or the logs of a folder: those in it, else those in the folders in it (one a node).
    Raises LogError, OSError.
    """
    if not stat.S_ISDIR(_kind(path)):
        return [path]
    found = sorted(path.glob("*.jsonl")) or [one for folder in sorted(path.iterdir()) for one
                                             in sorted(folder.glob("*.jsonl"))]
    if not found:
        raise LogError(f"{path}: there is no event log (*.jsonl) in this folder", missing=True)
    return found


def lines(file: pathlib.Path, own: bool) -> list[bytes]:
    """Its whole lines: what follows the last newline is cut short, or nothing. `own`: this node's.
    Raises LogError, OSError.
    """
    try:  # opening a pipe without a writer would block without end
        content = disk.read_bytes(file, opener=lambda path, _: open_file(path))
    except DamagedError:
        advice = "move it away, the agent begins a new log" if own else "copy the log into one and name that"
        raise LogError(f"{file}: is no regular file; {advice}") from None
    return content.removeprefix(disk.BOM).split(b"\n")[:-1]


def _kind(path: pathlib.Path) -> int:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        raise LogError(f"{path}: no such file or folder", missing=True) from None
