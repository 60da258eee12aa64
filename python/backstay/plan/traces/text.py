"""Text of a log and its table."""

import bz2
import codecs
import csv
import errno
import gzip
import io
import lzma
import operator
import zlib

from .. import files
from ..check import PlanError
from ..words import counted
from .log import COMMENTS, EMPTY, HEADS, BadRow, Rows

_OPENERS = {b"\xfd7zXZ\0": lzma.open, b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
_SEPARATORS = "|,;\t"
_WIDE = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_LINES_MAX = 20  # of one row


def read(path) -> str:
    """Text of a file, plain or compressed with xz, gzip or bzip2. OSError, or PlanError for damage
    and for no text.
    """
    data = files.read_bytes(path)
    for magic, opened in _OPENERS.items():
        if data.startswith(magic):
            data = _unpacked(opened, data, path)
            break
    wide = data.startswith(_WIDE)
    if not wide and b"\0" in data:
        raise PlanError("trace", f"{path}: not a text file")
    text = data.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    if not text.strip():
        raise PlanError("trace", f"{path}:1: column 1: the file is empty")
    return text


def _unpacked(opened, data: bytes, path) -> bytes:
    try:
        with opened(io.BytesIO(data)) as file:
            return files.at_most(file, path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        if getattr(error, "errno", None) == errno.EFBIG:
            raise
        raise PlanError("trace", f"{path}: the compressed file is damaged") from None


def _is_comment(line: str) -> bool:
    return line.lstrip(' \t"').startswith("#")


def first_line(text: str) -> str:
    """The first line that is neither empty nor a comment."""
    return next((line.strip() for line in io.StringIO(text, newline="")
                 if line.strip() and not _is_comment(line)), "")


def separator(head: str) -> str | None:
    """What separates the columns of a table with this head."""
    found = max(_SEPARATORS, key=head.count)
    return found if found in head else None


def cells(text: str, rows: Rows, separator: str, quoted: bool = True):
    """(line number, cells) of each row that is neither empty nor a comment. `quoted`: cells may be
    in double quotes, then also over several lines.
    """
    lines, place, width = list(io.StringIO(text, newline="")), 0, 0
    while place < len(lines):
        line, taken = lines[place], 1
        rows.read += 1
        if not line.strip(f'{separator} \t\r\n"'):
            rows.leave(EMPTY, place + 1)
        elif _is_comment(line):
            rows.leave(COMMENTS, place + 1)
        else:
            with rows.row(place + 1):
                found = line.split(separator)
                if quoted:
                    found, taken = _unquoted(lines[place:place + _LINES_MAX], separator, width)
                while not quoted and len(found) < width and place + taken < len(lines):
                    more = lines[place + taken].split(separator)
                    if len(more) >= width or len(found) + len(more) - 1 > width:
                        break
                    found[-1:] = [found[-1] + more[0], *more[1:]]  # a line's end within a column
                    taken += 1
                width = width or len(found)
                yield place + 1, [cell.strip() for cell in found]
        place += taken


def _unquoted(lines: list[str], separator: str, width: int) -> tuple[list[str], int]:
    """(cells of the first row, its lines): several only if they make `width` cells; a quote that
    stays open ends with its line.
    """
    try:
        reader = csv.reader(lines, delimiter=separator, strict=True)
        found = next(reader)
        if reader.line_num == 1 or len(found) == width:
            return found, reader.line_num
    except csv.Error:
        pass
    try:
        return next(csv.reader(lines[:1], delimiter=separator)), 1
    except csv.Error as failure:
        raise BadRow("1", str(failure)) from None


class Cells(dict):
    """A row by the names of its columns; BadRow for one whose cell cannot be told."""

    def __init__(self, found, width: int, head: list[str]):
        super().__init__(found)
        self._first = head[width] if width < len(head) else None
        self._reason = f"the line has {counted(width, 'column')}, the head {len(head)}"

    def __missing__(self, column):
        raise BadRow(self._first or column, self._reason)


def table(text: str, rows: Rows, wanted: tuple[str, ...], typed: dict, quoted: bool = True):
    """(line number, Cells) of each row below the head. PlanError for missing columns.

    `typed`: columns of a known form, and what tells whether a text has it. Others may hold the
    separator.
    """
    first, typed = first_line(text), {"": operator.not_, **typed}
    names, head = {name.lower(): name for name in (*wanted, *typed)}, None
    for line, found in cells(text, rows, separator(first) or "|", quoted):
        known = [names.get(cell.lower(), cell) for cell in found]
        if set(wanted) <= set(known):
            if head is None:
                rows.read -= 1
            else:
                rows.leave(HEADS, line)
            head = known
        elif head is None:
            missing = next(name for name in wanted if name not in known)
            hint = "" if set(wanted) & set(known) else " (a table needs its head: no --noheader)"
            raise PlanError("trace", f"{rows.where}:{line}: column {missing}: is missing; the "
                                     f"columns are {', '.join(found)}{hint}")
        else:
            yield line, Cells(_told(head, found, typed), len(found), head)


def _told(head: list[str], found: list[str], typed: dict) -> dict[str, str]:
    """The cells that can be told."""
    if len(found) <= len(head):
        return dict(zip(head, found, strict=False))
    ways = {}
    while len(found) >= len(head):
        for column, values in _fitting(head, found, typed).items():
            ways.setdefault(column, set()).update(values)
        if found[-1]:
            break
        found = found[:-1]  # a separator at the end of the row, but not of the head
    return {column: values.pop() for column, values in ways.items() if len(values) == 1}


def _fitting(head: list[str], found: list[str], typed: dict) -> dict[str, set[str]]:
    """What may stand in each typed column of a row that has more cells than the head, over all ways
    to give the cells to columns in their order: one to a typed column, one or more to any other.
    """
    more = len(found) - len(head)
    free = [column not in typed for column in head]
    # By how many cells each column may be shifted, for itself, then as its neighbours allow.
    shifts = [{shift for shift in range(more + 1)
               if free[place] or typed[column](found[place + shift])}
              for place, column in enumerate(head)]
    low, high = {0}, {more}
    for place in range(len(head)):
        low = shifts[place] = shifts[place] & low
        if free[place]:
            low = set(range(min(low, default=more + 1), more + 1))
    for place in reversed(range(len(head))):
        high = shifts[place] = shifts[place] & (
            set(range(max(high, default=-1) + 1)) if free[place] else high)
    return {column: {found[place + shift] for shift in shifts[place]} for place, column
            in enumerate(head) if not free[place]}
