"""Reads a job's event logs, docs/format/events.md: every line that is whole, once, and where the
others are.
"""

import collections
import json
import pathlib
from typing import NamedTuple

from ..plan.words import counted
from . import logs
from .logs import LogError as LogError  # what read raises

WHOLE, NUMBERS = ("node", "of"), ("version", "bytes", "seconds", "write_seconds", "ranks", "rank",
                                  "t_ns", "begin_ns", "end_ns")
FILES = ("captured", "direct", "real")  # of files_written
TEXTS, LISTS = ("run", "from", "why"), ("nodes",)
ALWAYS, NODES_MAX = ("t_ns", "run", "node"), 2**32
NEEDED = {
    "run_begin": ("ranks",),
    "rank_left": ("rank", "lost"),
    "nodes_lost": ("nodes",),
    "nodes_back": ("nodes",),
    "capture_begin": ("version",),
    "captured": ("version", "bytes", "seconds", "ranks"),
    "capture_failed": ("version",),
    "written": ("version", "bytes", "seconds"),
    "local": ("version", "bytes", "seconds"),
    "protected": ("version",),
    "durable": ("version",),
    "durable_failed": ("version",),
    "write_failed": ("version",),
    "protect_failed": ("version", "of"),
    "overtaken": ("version", "of"),
    "reprotect_begin": ("version", "of"),
    "reprotected": ("version", "of", "bytes", "seconds"),
    "repaired": ("version", "of"),
    "rebuilt": ("version", "of"),
    "removed": ("version",),
    "set_aside": ("version",),
    "skipped": ("version",),
    "restart_begin": ("from",),
    "restored": ("version", "from"),
    "restart_failed": (),
    "refused": (),
    "attempt_ended": (),
    "home": ("version",),
    "files_written": ("captured", "direct", "real", "writes", "waits"),
}  # fmt: skip


# Agents write these, and rank 0 of a program without one does not (by_ranks.py).
OPTIONAL = {"durable": ("bytes", "seconds"), "restart_begin": ("version",),
            "restored": ("bytes", "seconds"), "restart_failed": ("version",)}  # fmt: skip
# Lists of records, and the numbers that each record has.
RECORDS = {("captured", "ranks"): ("rank", "bytes", "begin_ns", "end_ns"),
           ("files_written", "writes"): ("below", "writes", "bytes", "seconds"),
           ("files_written", "waits"): ("calls", "seconds", "longest")}  # fmt: skip


class Log(NamedTuple):
    """Known events in order of time; `unreadable`: file:line and why."""

    events: list[dict]
    unreadable: list[str]


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e19


def _is_node(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < NODES_MAX


def _has_numbers(value, needed: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and all(_is_number(value.get(part)) for part in needed)


def _wrong_field(event: dict, key: str) -> bool:
    value = event.get(key)
    if (event["event"], key) in RECORDS:
        needed = RECORDS[event["event"], key]
        return not isinstance(value, list) or not all(_has_numbers(one, needed) for one in value)
    if key in FILES:
        return not _has_numbers(value, ("files", "bytes"))
    if key in WHOLE:
        return not _is_node(value)
    if key in LISTS:
        return not isinstance(value, list) or not all(_is_node(one) for one in value)
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
    told = [key for key in OPTIONAL.get(event["event"], ()) if key in event]
    for key in (*ALWAYS, *NEEDED[event["event"]], *told):
        if _wrong_field(event, key):
            return None, f"{event['event']} without a valid {key}"
    return event, None


class _Reader:
    def __init__(self):
        self.seen: set[bytes] = set()  # a line of a log that is given twice counts once
        self.events: list[dict] = []
        self.unreadable: list[str] = []
        self.lines = 0

    def add(self, file: pathlib.Path, job: str | None) -> None:
        """`job`: whose lines count; None: anybody's. Raises LogError, OSError."""
        first, events_of_job, strange = len(self.unreadable), 0, collections.Counter()
        lines = logs.lines(file, own=job is None)
        self.lines += len(lines)
        for number, line in enumerate(lines, 1):
            event, why = _parsed(line)
            if why is not None:
                self.unreadable.append(f"{file}:{number}: {why}")
            elif event is not None and job is not None and event.get("job") != job:
                strange[str(event.get("job"))] += 1
            elif event is not None:
                events_of_job += 1
                if line not in self.seen:
                    self.seen.add(line)
                    self.events.append(event)
        if strange and not events_of_job:
            raise LogError(f"{file}: is the log of job {next(iter(strange))}, not of {job}",
                           mismatch=True)
        if not lines:  # of a node whose disk was full, or that has only begun
            self.unreadable.append(f"{file}: is empty (it holds no whole line)")
        elif job is not None and not events_of_job:
            raise _nothing_in(file, self.unreadable[first:])
        self.unreadable += [f"{file}: {counted(lines, 'line')} of job {other}" for other,
                            lines in strange.items()]


def _nothing_in(file: pathlib.Path, unreadable: list[str]) -> LogError:
    first = f"; {unreadable[0]}" if unreadable else ""
    return LogError(f"{file}: holds no event that can be read{first}")


def read(folder: pathlib.Path | None, job: str = "", more: list[pathlib.Path] | None = None) -> Log:
    """The log of a job's folder (None: there is none here) and `more` files or folders of logs,
    which must be of `job`.

    Raises LogError; OSError if a file cannot be read.
    """
    reader, files = _Reader(), [] if folder is None else logs.of_job(folder)
    for file in files:
        reader.add(file, None)
    if reader.lines and not reader.events:
        raise _nothing_in(files[-1], reader.unreadable)
    others = [one for path in more or [] for one in logs.named(path)]
    for file in others:
        reader.add(file, job)
    if (files or others) and not reader.lines:
        raise _nothing_in([*files, *others][-1], [])
    return Log(sorted(reader.events, key=lambda event: event["t_ns"]), reader.unreadable)
