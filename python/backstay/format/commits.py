"""Commit records of a version, and the mark of one that was set aside."""

import os
import re

from . import records
from .errors import DamagedError, UncommittedError
from .node import open_file

VERSION = re.compile(r"v(?!0{16})([0-9]{16})\Z")
_REASON_MAX = 4096  # characters of a mark's first line


def level_order(level: str) -> int:
    return list(records.LEVELS.values()).index(level)


def damage_of(folder: str) -> str | None:
    try:
        descriptor = open_file(os.path.join(folder, "damaged"))
    except (
        FileNotFoundError,
        DamagedError,
    ):  # a pipe or a folder in its place says nothing, as in the agent
        return None
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        return file.readline(_REASON_MAX).strip() or "no reason given"


def _read_commit(path: str, level: str) -> records.Commit:
    with os.fdopen(open_file(path), "rb") as file:
        record = records.commit(file.read(records.COMMIT_BYTES + 1), path)
    if record.level != level:
        raise DamagedError(f"{path}: says level {record.level}")
    return record


def read_commits(folder: str) -> dict[str, records.Commit]:
    """The good commit records, by level. Where there are only wrong ones that is damage."""
    found = {}
    wrong = None
    for level in records.LEVELS.values():
        path = os.path.join(folder, f"commit.{level}")
        if not os.path.lexists(path):
            continue
        try:
            found[level] = _read_commit(path, level)
        except DamagedError as damage:
            wrong = wrong or damage
        except FileNotFoundError:
            if os.path.lexists(path):
                wrong = wrong or DamagedError(f"{path}: is a link that leads nowhere")
    if not found and wrong:
        raise wrong
    if not found:
        raise UncommittedError(f"{folder}: has no commit record, so this version does not exist")
    return found


def check_commits(folder: str, commits: dict[str, records.Commit]) -> None:
    """All levels must speak of the same version, the one that the folder is named after."""
    facts = {(c.job, c.version, c.run, c.nodes, c.ranks, c.manifests_sum) for c in commits.values()}
    if len(facts) > 1:
        raise DamagedError(f"{folder}: the commit records contradict each other")
    number = next(iter(commits.values())).version
    named = VERSION.match(os.path.basename(os.path.abspath(folder)))
    if named and int(named.group(1)) != number:
        raise DamagedError(f"{folder}: the commit record says version {number}")
