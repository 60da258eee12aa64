"""Reads a job's event log, docs/format/events.md: every line that is whole, and where the others are."""

import json
import pathlib
from typing import NamedTuple

from ..format.errors import DamagedError
from ..format.node import open_file
from ..plan import files as disk

NAMES = ("events.1.jsonl", "events.jsonl")  # older first
NUMBERS, TEXTS = ("version", "bytes", "seconds", "ranks", "rank", "t_ns", "begin_ns", "end_ns"), ("run", "from", "why")
NEEDED = {
    "run_begin": ("run", "ranks"),
    "rank_left": ("run", "rank", "lost"),
    "capture_begin": ("run", "version"),
    "captured": ("run", "version", "bytes", "seconds", "ranks"),
    "capture_failed": ("version",),
    "local": ("version", "bytes", "seconds"),
    "protected": ("version", "bytes", "seconds"),
    "durable": ("version", "bytes", "seconds"),
    "write_failed": ("version",),
    "removed": ("version",),
    "set_aside": ("version",),
    "skipped": ("version",),
    "restart_begin": ("run", "version", "from"),
    "restored": ("run", "version", "from", "bytes", "seconds"),
    "restart_failed": ("version",),
}


class LogError(Exception):
    """There is no log, or nothing in it can be read. `missing`: there is no file."""

    def __init__(self, message: str, missing: bool = False):
        super().__init__(message)
        self.missing = missing


class Log(NamedTuple):
    """Known events in order of time; `unreadable`: file:line and why."""

    events: list[dict]
    unreadable: list[str]


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e19


def _wrong_field(event: dict, key: str) -> bool:
    value = event.get(key)
    if key == "ranks" and event["event"] == "captured":
        needed = ("rank", "bytes", "begin_ns", "end_ns")
        return not isinstance(value, list) or not all(
            isinstance(one, dict) and all(_is_number(one.get(part)) for part in needed) for one in value)  # fmt: skip
    if key in NUMBERS:
        return not _is_number(value)
    return not isinstance(value, str) if key in TEXTS else not isinstance(value, bool)


def _parsed(line: bytes):
    """(event, None), (None, why), or (None, None) for a kind of event that is not known."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None, "not JSON"
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None, "no event"
    if event["event"] not in NEEDED:
        return None, None
    for key in ("t_ns", *NEEDED[event["event"]]):
        if _wrong_field(event, key):
            return None, f"{event['event']} without a valid {key}"
    return event, None


def _lines(file: pathlib.Path) -> list[bytes]:
    """LogError where no regular file stands: a pipe would be waited for."""
    try:
        return disk.read_bytes(file, opener=lambda path, _: open_file(path)).split(b"\n")
    except DamagedError:
        raise LogError(f"{file}: is no regular file; move it away, the agent begins a new log") from None


def read(folder: pathlib.Path) -> Log:
    """The log of a job's folder. Raises LogError; OSError if a file cannot be read."""
    files = [folder / name for name in NAMES if (folder / name).exists()]
    if not files:
        raise LogError(f"{folder / NAMES[-1]}: no such file; the agent writes it while the job runs", missing=True)
    found, unreadable = [], []
    for file in files:
        lines = _lines(file)
        for number, line in enumerate(lines[:-1], 1):  # the last has no newline: cut short, or empty
            event, why = _parsed(line)
            if event is not None:
                found.append(event)
            elif why is not None:
                unreadable.append(f"{file}:{number}: {why}")
    if not found:
        first = f"; {unreadable[0]}" if unreadable else ""
        raise LogError(f"{files[-1]}: holds no event that can be read{first}")
    return Log(sorted(found, key=lambda event: event["t_ns"]), unreadable)
