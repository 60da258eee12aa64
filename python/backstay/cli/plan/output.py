"""What every `backstay plan` command prints: JSON, or aligned lines with notes below."""

import json
import math
from typing import Annotated

import numpy as np
import typer

from ...plan import files
from ...plan.check import PlanError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON")]
EXIT_CODES = "Exit codes: 0 ok, 1 failed (a file cannot be written), 2 wrong usage, 3 no such file."


def whole_number(text) -> int:
    """For an option's `parser`: 100000, and 1e5 as it is written for large machines."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value.is_integer():
        raise typer.BadParameter(f"must be a whole number such as 64 or 1e5, not {text!r}")
    return int(value)


def plain(value):
    """numpy's numbers and arrays as Python's; PlanError for what JSON cannot hold."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError("the result",
                        "is too large for a number; the inputs lie outside what the model can say")
    return value


def show(result: dict, lines: list[tuple[str, str]], as_json: bool, notes: list[str] = ()) -> None:
    """Prints `result` as JSON with `notes`, or `lines` (label, value) and the notes."""
    result = plain({**result, "notes": list(notes)})
    if as_json:
        say(json.dumps(result, indent=2, allow_nan=False))
        return
    width = max(len(label) for label, _ in lines)
    say("\n".join([*(f"{label:<{width}}  {value}".rstrip() for label, value in lines),
                   *(f"note: {note}" for note in notes)]))


def say(text: str) -> None:
    """Lines on the standard output. WriteError if it takes no more."""
    try:
        print(text)
    except OSError as error:
        raise files.WriteError("standard output", error) from None


def number(value: float, digits: int = 4) -> str:
    """Rounded to `digits` digits, with thin groups of thousands: 1 366."""
    value = float(value)
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}".replace(",", " ")


def seconds(value: float) -> str:
    """1 366 s (22.8 min)."""
    for name, size in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if value >= 1.5 * size:
            return f"{number(value)} s ({number(value / size, 3)} {name})"
    return f"{number(value)} s"


def sized(value: float, unit: str = "B") -> str:
    """32.77 TB."""
    for name, size in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{number(value / size)} {name}{unit}"
    return f"{number(value)} {unit}"


def percent(value: float) -> str:
    return f"{number(100 * value)} %"


def probability(value: float) -> str:
    """As many nines as count: 0.999081, 1 − 3.1e-09."""
    if 0 < 1 - value < 1e-6:
        return f"1 − {1 - value:.1e}"
    return f"{value:.6g}"
