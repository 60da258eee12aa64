"""Captured files in words and tables, for the page and for the terminal."""

from ..plan.words import counted, grouped
from . import text
from .captured_files import Profile

TITLE = "Captured files"
HEADS = {"sizes": ["size of the writes", "writes", "%", "data", "%", "time", "%"],
         "waits": ["calls of the programs", "calls", "all together", "longest"],
         "levels": ["versions of captured files", "versions", "median", "longest"]}  # fmt: skip
GREATEST = "1 MiB and more"
CALLS = {"room": "write, making room in memory"}
REACHED = {"captured": "begun to captured", "local": "captured to local",
           "home": "captured to home"}  # fmt: skip
KINDS = {"captured": "into the pool", "direct": "brought to their places at their close",
         "real": "made real while they were open"}  # fmt: skip


def _binary(value: int) -> str:
    """A limit of sizes: 256 KiB."""
    for name, size in (("MiB", 2**20), ("KiB", 2**10)):
        if value >= size and value % size == 0:
            return f"{value // size} {name}"
    return f"{value} B"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""


def words(profile: Profile) -> str:
    parts = [f"{counted(one.files, 'file')} of {text.size(one.bytes)} {KINDS[kind]}" for kind,
             one in profile.files.items() if one.files]  # fmt: skip
    if not parts:
        return "The log does not say what was written: no program has ended yet."
    return (f"{'; '.join(parts)}. {counted(profile.writes, 'write')} of "
            f"{text.size(profile.bytes)}.")  # fmt: skip


def _sizes(profile: Profile) -> list[list[str]]:
    seconds, rows = sum(one.seconds for one in profile.sizes), []
    for one in profile.sizes:
        label = f"below {_binary(one.below)}" if one.below else GREATEST
        rows.append([label, grouped(one.writes), _share(one.writes, profile.writes),
                     text.size(one.bytes), _share(one.bytes, profile.bytes),
                     text.time(one.seconds), _share(one.seconds, seconds)])  # fmt: skip
    return rows


def tables(profile: Profile) -> list[tuple[list[str], list[list[str]]]]:
    """Head and rows of each table that has any: writes by size, waits, levels."""
    waits = [[CALLS.get(one.call, one.call), grouped(one.calls), text.time(one.seconds),
              text.time(one.longest_s)] for one in profile.waits]  # fmt: skip
    levels = [[REACHED[level], grouped(one.versions), text.time(one.median_s),
               text.time(one.longest_s)] for level, one in profile.levels.items()]  # fmt: skip
    found = {"sizes": _sizes(profile), "waits": waits, "levels": levels}
    return [(HEADS[name], rows) for name, rows in found.items() if rows]


def lines(profile: Profile) -> list[str]:
    """For the terminal."""
    made = [f"{TITLE}: {words(profile)}"]
    for head, rows in tables(profile):
        widths = [max(len(row[number]) for row in [head, *rows]) for number in range(len(head))]
        for row in [head, *rows]:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell,
                                                width in zip(row[1:], widths[1:], strict=True))]
            made.append("  ".join(cells).rstrip())
    return made
