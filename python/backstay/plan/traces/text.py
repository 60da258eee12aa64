"""Text of a log, its table, its numbers and dates."""

import bz2
import csv
import datetime
import errno
import gzip
import io
import lzma
import math
import zlib

from .. import files
from ..check import PlanError
from ..words import counted
from .log import wrong

_OPENERS = {b"\xfd7zXZ\0": lzma.open, b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
_EPOCH = datetime.datetime(1970, 1, 1)


def read(path) -> str:
    """Text of a file, plain or compressed with xz, gzip or bzip2. OSError, or PlanError for damage
    and for no text.
    """
    data = files.read_bytes(path)
    for magic, opened in _OPENERS.items():
        if data.startswith(magic):
            data = _unpacked(opened, data, path)
            break
    if b"\0" in data:
        raise PlanError("trace", f"{path}: not a text file")
    text = data.decode("utf-8-sig", errors="replace")
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


def rows(text: str, where: str, separator: str, quoted: bool = True):
    """(line number, cells) of each line that is not empty. `quoted`: cells may be in double quotes.
    """
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(text.splitlines(keepends=True), delimiter=separator, quoting=quoting)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as failure:
        raise PlanError("trace", f"{where}:{reader.line_num}: column 1: {failure}") from None


def table(text: str, where: str, separator: str, wanted: tuple[str, ...], free: str | None = None):
    """(line number, {column: cell}) of each line below the head. PlanError for missing columns and
    cells.

    `free`: a column whose text may hold the separator; then nothing is quoted, and what is too much
    belongs to it.
    """
    lines = rows(text, where, separator, quoted=free is None)
    line, head = next(lines)
    missing = [name for name in wanted if name not in head]
    if missing:
        raise wrong(where, line, missing[0], f"is missing; the columns are {', '.join(head)}")
    for line, cells in lines:
        if free in head and len(cells) > len(head):
            begin, more = head.index(free), len(cells) - len(head)
            cells[begin:begin + more + 1] = [separator.join(cells[begin:begin + more + 1])]
        if len(cells) != len(head):
            column = head[len(cells)] if len(cells) < len(head) else str(len(head) + 1)
            raise wrong(where, line, column,
                        f"the line has {counted(len(cells), 'column')}, the head {len(head)}")
        yield line, dict(zip(head, cells, strict=True))


def date_s(text: str, formats: tuple[str, ...], shown: str, where: str, line: int,
           column: str) -> float:
    """Seconds of a date in one of `formats`; `shown` is how the message writes them."""
    for form in formats:
        try:
            return (datetime.datetime.strptime(text, form) - _EPOCH).total_seconds()
        except ValueError:
            continue
    raise wrong(where, line, column, f"must be a date such as {shown}, not {text!r}")


def iso_s(text: str, shown: str, where: str, line: int, column: str) -> tuple[str, float]:
    """("a date", or "a date with its zone"; seconds) of ISO 8601; `shown` is how the message writes
    it.
    """
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise wrong(where, line, column, f"must be a date such as {shown}, not {text!r}") from None
    if at.tzinfo is None:
        return "a date", (at - _EPOCH).total_seconds()
    return "a date with its zone", (at - _EPOCH.replace(tzinfo=datetime.UTC)).total_seconds()


def number(text, where: str, line: int, column: str) -> float:
    """A finite number of reasonable size."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(text, bool) or not abs(value) <= 1e12:
        raise wrong(where, line, column, f"must be a finite number, not {text!r}")
    return value
