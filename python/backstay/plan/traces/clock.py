"""Times of a log: numbers and dates, all of one file of one kind."""

import datetime
import math
import re

from .log import BadRow, Rows

_EPOCH = datetime.datetime(1970, 1, 1)
_DATED = re.compile(r"[/:]|\d-\d")
_UTC = re.compile(r"\s*(utc|gmt)$", re.IGNORECASE)
_DATES = tuple(f"{day} {time}" for day in ("%Y-%m-%d", "%Y/%m/%d") for time
               in ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p"))
AMERICAN = tuple(form.replace("%Y/%m/%d", day) for day in ("%m/%d/%Y", "%m/%d/%y") for form
                 in _DATES[4:])
# What numbers are from a size on that no time in seconds, or days, has.
_SINCE_1970 = ((1e17, 1e-9, "nanoseconds"), (1e14, 1e-6, "microseconds"),
               (1e11, 1e-3, "milliseconds"))
_SECONDS_SINCE_1970 = (1e8, 1.0, "seconds")
_LARGEST = 1e12


class Clock:
    """Seconds of a file's times, whose kind the first one says. `forms`: of its dates, beside those
    of ISO 8601, `shown` in messages.
    """

    def __init__(self, rows: Rows, unit_s: float = 1.0, shown: str = "2024-05-01T12:00:00, or seconds",
                 forms: tuple[str, ...] = ()):
        self._rows, self._unit_s, self._shown = rows, unit_s, shown
        self._forms, self._kind = _DATES + forms, None

    def s(self, cell: str, column: str) -> float:
        """BadRow for what is no time, or none of the kind before."""
        try:
            float(cell)
        except ValueError:
            if _DATED.search(cell) or "date" in (self._kind or "date"):
                return self._date_s(cell, column)
        return self.number_s(cell, column)

    def number_s(self, value, column: str) -> float:
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        kind, factor = "seconds" if self._unit_s == 1 else "days", self._unit_s
        sizes = _SINCE_1970 if self._unit_s == 1 else (*_SINCE_1970, _SECONDS_SINCE_1970)
        if self._kind != kind:
            for least, second, name in sizes:
                if abs(number) >= least:
                    kind, factor = f"{name} since 1970", second
                    break
        if not abs(number * factor) <= _LARGEST * self._unit_s:
            raise BadRow(column, f"must be a finite number, not {value!r}")
        return self._of_kind(kind, number * factor, value, column)

    def _date_s(self, cell: str, column: str) -> float:
        at = _date(_UTC.sub("Z", cell), self._forms)
        if at is None:
            raise BadRow(column, f"must be a date such as {self._shown}, not {cell!r}")
        if at.tzinfo is None:
            return self._of_kind("a date", (at - _EPOCH).total_seconds(), cell, column)
        begin = _EPOCH.replace(tzinfo=datetime.UTC)
        return self._of_kind("a date with its zone", (at - begin).total_seconds(), cell, column)

    def _of_kind(self, kind: str, at_s: float, cell, column: str) -> float:
        if self._kind is None:
            self._kind = kind
            if "1970" in kind:
                self._rows.notes.append(f"times are {kind}")
        if kind != self._kind:
            raise BadRow(column, f"must be {self._kind} as in the lines before, not {cell!r}")
        return at_s


def _date(text: str, forms: tuple[str, ...]) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in forms:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    return None
