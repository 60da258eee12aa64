"""A range of a process's memory as a word of the command line: 7f0012345000+4096."""

import re
from typing import NamedTuple

import typer

_FORM = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})\+(0x[0-9a-fA-F]+|[0-9]+)\Z")


class Range(NamedTuple):
    address: int
    bytes: int


def range_of(word: str) -> Range:
    """The address in hexadecimal, the bytes in decimal, or in hexadecimal after 0x."""
    match = _FORM.match(word)
    if match is None or int(match[2], 0) == 0:
        raise typer.BadParameter(
            f"{word!r} is no range: an address in hexadecimal, +, a number of bytes "
            "(7f0012345000+4096)"
        )
    return Range(int(match[1], 16), int(match[2], 0))
