"""What a line of functions.txt says (docs/protocol/lower-half.md, "Functions"), for the generators.

Standard library only.
"""

import re

PROTOTYPE = re.compile(r"(\w+) (\w+)\((.*)\)$")
PARAMETER = re.compile(r"(?:(in|out|inout) )?(?:const )?(\w+)(\**) (\w+)((?:\[[^]]*\])*)$")
CLASSES = {
    f"MPI_{name}": name.lower()
    for name in (
        "Comm Group Datatype Op Request Info Errhandler Message Win File Session".split()
    )
}
# By-value types that are no handles; all else by value is an opaque pointer of MPI's tools.
NUMBERS = {
    "int": "int",
    "MPI_Fint": "int",
    "MPI_Aint": "int64_t",
    "MPI_Count": "int64_t",
    "MPI_Offset": "int64_t",
    "MPI_T_cb_safety": "int",
    "double": "double",
}


def lines_of(path):
    """Those that say something."""
    with open(path) as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def prototypes(path):
    """(result, name, the parameters' texts) of each function, in the order of the table."""
    for line in lines_of(path):
        result, name, rest = PROTOTYPE.match(line).groups()
        yield result, name, [] if rest in ("", "void") else rest.split(", ")


class Argument:
    """One parameter as functions.txt has it."""

    def __init__(self, text):
        found = PARAMETER.match(text)
        assert found, text
        self.direction, self.kind, stars, self.name, arrays = found.groups()
        self.is_pointer = bool(stars or arrays)
        self.handle = CLASSES.get(self.kind)  # None: it is none
        self.length = arrays[1:-1] if arrays else ""

    def declared(self, handle):
        """Its declaration in C++; `handle` is the template of a handle's type."""
        if self.is_pointer:
            return f"void* {self.name}"
        if self.handle:
            return f"{handle}<Class::{self.handle}> {self.name}"
        return f"{NUMBERS.get(self.kind, 'void*')} {self.name}"
