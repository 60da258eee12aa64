"""TOML files of the planner (machines, prices): flat tables, every key checked, errors with line
and nearest key.
"""

import difflib
import importlib.resources
import tomllib

from . import files
from .check import COUNT_MAX, LARGEST, SMALLEST, PlanError


def nearest(word: str, words) -> str:
    """The end of a message about an unknown word."""
    close = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {close[0]}" if close else f"; there are {', '.join(sorted(words))}"


def line_of(text: str, table: str, key: str | None = None) -> int:
    """Line of a key, or of the table's head; tomllib gives positions only for what it cannot parse.
    """
    inside, found = False, 1
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            inside = stripped.strip("[] ").split("]")[0].strip().strip("\"'") == table
            found = number if inside else found
        elif inside and key is not None and stripped.split("=")[0].strip() == key:
            return number
    return found


def _wrong(kind: str, value) -> str | None:
    """What is wrong with a value of a kind: text, positive, not_negative, whole, fraction. None:
    nothing.
    """
    if kind == "text":
        return None if isinstance(value, str) else "must be text"
    number = isinstance(value, int | float) and not isinstance(value,
        bool) and abs(value) <= LARGEST
    if kind == "not_negative":
        return None if number and value >= 0 else f"must be a number from 0 to {LARGEST:g}, not {value!r}"
    if not number or value <= 0:
        return f"must be a number above 0, up to {LARGEST:g}, not {value!r}"
    if value < SMALLEST:
        return f"must be at least {SMALLEST:g}, not {value!r}"
    if kind == "whole" and (value != int(value) or value > COUNT_MAX):
        return f"must be a whole number up to 2^53, not {value!r}"
    return f"must be at most 1, not {value!r}" if kind == "fraction" and value > 1 else None


def parse(text: str, where: str, parameter: str, keys: dict[str, str]) -> dict[str, dict]:
    """The tables of a text. `keys`: their kinds. Raises PlanError about `parameter` naming `where`,
    line and key.
    """
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as failure:
        raise PlanError(parameter, f"{where}: not TOML: {failure}") from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise PlanError(parameter,
                            f"{where}:1: {name} is outside of a table; begin with [a-name]")
        for key, value in table.items():
            if key not in keys:
                line, reason = line_of(text, name, key), f"unknown key {key}{nearest(key, keys)}"
                raise PlanError(parameter, f"{where}:{line}: {reason}")
            if reason := _wrong(keys[key], value):
                raise PlanError(parameter, f"{where}:{line_of(text, name, key)}: {key} {reason}")
            if keys[key] == "whole":
                table[key] = int(value)  # also of 1e5
    return tables


def preset(name: str) -> str:
    """Text of a file of the package."""
    return importlib.resources.files(__package__).joinpath(name).read_text("utf-8")


def read(path, parameter: str) -> str:
    """Text of the user's file. OSError if it cannot be read, PlanError if it is not text."""
    try:
        return files.read_text(path)
    except UnicodeDecodeError:
        raise PlanError(parameter, f"{path}: not a text file in UTF-8") from None
