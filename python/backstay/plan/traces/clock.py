"""Times of a log: numbers and dates, all of one file of one kind."""

import datetime
import math
import re

from .log import BadRow, Rows

AMERICAN = "%m/%d/%Y", "%m/%d/%y"
_DAYS = "%Y-%m-%d", "%Y/%m/%d"
_TIMES = "%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p"
_EPOCH = datetime.datetime(1970, 1, 1)
_UTC = re.compile(r"\s*(utc|gmt)$", re.IGNORECASE)
_DATED = re.compile(r"[/:]|\d-\d")
# From which size on a number can be no time in seconds, or in days, but one since 1970.
_SINCE_1970 = ((1e17, 1e-9, "nano"), (1e14, 1e-6, "micro"), (1e11, 1e-3, "milli"))
_LARGEST = 1e12


class Clock:
    """Seconds of a file's times, whose kind the first one says: numbers in units of `unit_s`, or
    dates of ISO 8601 and with `days`; messages show `shown`.
    """

    def __init__(self, rows: Rows, unit_s: float = 1.0, days: tuple[str, ...] = (),
                 shown: str = "2024-05-01T12:00:00, or seconds"):
        self._rows, self._unit_s, self._shown, self._kind = rows, unit_s, shown, None
        self._forms = [f"{day} {time}" for day in (*_DAYS, *days) for time in _TIMES]

    def s(self, cell, column: str) -> float:
        """BadRow for what is no time, or none of the kind before."""
        try:
            number = math.nan if isinstance(cell, bool) else float(cell)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
            dates = self._kind is None or "date" in self._kind
            if isinstance(cell, str) and self._unit_s == 1 and (dates or _DATED.search(cell)):
                return self._known(*self._date(cell, column), cell, column)
        kind, factor = "seconds" if self._unit_s == 1 else "days", self._unit_s
        sizes = _SINCE_1970 if self._unit_s == 1 else (*_SINCE_1970, (1e8, 1.0, ""))
        if self._kind != kind:
            kind, factor = next(((f"{name}seconds since 1970", second) for least, second, name
                                 in sizes if abs(number) >= least), (kind, factor))
        if not abs(number * factor) <= _LARGEST * self._unit_s:
            raise BadRow(column, f"must be a finite number, not {cell!r}")
        return self._known(kind, number * factor, cell, column)

    def _date(self, cell: str, column: str) -> tuple[str, float]:
        for read in (datetime.datetime.fromisoformat,
                     *(lambda text, form=form: datetime.datetime.strptime(text, form)
                       for form in self._forms)):
            try:
                at = read(_UTC.sub("Z", cell))
            except ValueError:
                continue
            zone = at.tzinfo and datetime.UTC
            return ("a date with its zone" if zone else "a date",
                    (at - _EPOCH.replace(tzinfo=zone)).total_seconds())
        raise BadRow(column, f"must be a date such as {self._shown}, not {cell!r}")

    def _known(self, kind: str, at_s: float, cell, column: str) -> float:
        if self._kind is None:
            self._kind = kind
            if "1970" in kind:
                self._rows.notes.append(f"times are {kind}")
        if kind != self._kind:
            raise BadRow(column, f"must be {self._kind} as in the lines before, not {cell!r}")
        return at_s
