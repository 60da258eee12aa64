#!/usr/bin/env python3
"""Generate the source of our MPI library for one ABI.

Usage: generate.py calls FUNCTIONS.TXT            functions that are not written by hand
       generate.py indices FUNCTIONS.TXT          their numbers in the table, as a header
       generate.py objects OPENMPI_OBJECTS.TXT    what Open MPI's handles are addresses of

It prints C++. docs/protocol/lower-half.md says what a line of FUNCTIONS.TXT is. Standard library
only.
"""

import re
import sys

import counted

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
# Functions of the program, lengths that no argument says, or the lower half's own thread:
# by_hand.cc, callbacks.cc, operations.cc.
BY_HAND = {
    "MPI_Alltoallw",
    "MPI_Alltoallw_init",
    "MPI_Comm_create_errhandler",
    "MPI_Comm_create_keyval",
    "MPI_Errhandler_create",
    "MPI_Finalize",
    "MPI_Finalized",
    "MPI_Ialltoallw",
    "MPI_Ineighbor_alltoallw",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Initialized",
    "MPI_Keyval_create",
    "MPI_Neighbor_alltoallw",
    "MPI_Neighbor_alltoallw_init",
    "MPI_Op_create",
    "MPI_Pcontrol",
    "MPI_Type_create_keyval",
    "MPI_Win_create_keyval",
} | counted.BY_HAND


def lines_of(path):
    with open(path) as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


class Parameter:
    """One argument: how the program gives it, and what the real MPI gets."""

    def __init__(self, text):
        found = PARAMETER.match(text)
        assert found, text
        self.direction, kind, stars, self.name, arrays = found.groups()
        self.is_pointer = bool(stars or arrays)
        self.handle = CLASSES.get(kind)
        self.length = arrays[1:-1] if arrays else ""
        self.number = NUMBERS.get(kind, "void*")
        # Wrapped: pointer to handles. Statuses go as they are.
        self.is_wrapped = self.handle is not None and self.is_pointer

    def declaration(self):
        if self.is_pointer:
            return f"void* {self.name}"
        if self.handle:
            return f"abi::Handle<Class::{self.handle}> {self.name}"
        return f"{self.number} {self.name}"

    def argument(self):
        if self.is_wrapped:
            return f"{self.name}_.place()"
        if self.handle:
            return f"abi::real<Class::{self.handle}>({self.name})"
        return self.name

    def wrapper(self):
        if not self.is_wrapped:
            return None
        # MPI_Cancel and statuses' functions read through a pointer; nothing is freed then.
        name = {"in": "InOut", "out": "Out", "inout": "InOut"}[self.direction]
        if not self.length:
            return f"{name}<Class::{self.handle}> {self.name}_({self.name});"
        name = {"in": "InArray", "out": "OutArray", "inout": "InOutArray"}[self.direction]
        return f"{name}<Class::{self.handle}> {self.name}_({self.name}, {self.length});"


def function(result, name, parameters):
    handle = CLASSES.get(result)
    kind = f"abi::Handle<Class::{handle}>" if handle else NUMBERS.get(result, "int")
    arguments = ", ".join([f"index_{name}", *(one.argument() for one in parameters)])
    real = "uint64_t" if handle else kind
    how = "inside" if counted.is_collective(name) else "call"
    call = f"{how}<{real}>({arguments})"
    before = list(counted.before(name, parameters))
    after = list(counted.after(name, parameters))
    wrapped = [one for one in parameters if one.is_wrapped]
    for one in wrapped:
        if any(other.name == one.length and other.is_pointer for other in parameters):
            one.length = f"pointed({one.length})"
    yield f"{kind} P{name}({', '.join(one.declaration() for one in parameters)}) {{"
    yield from before
    if handle:
        # What MPICH gives in a register has 4 bytes that count.
        yield f"  return known_handle_for<Class::{handle}>(real_result<Class::{handle}>({call}));"
    elif not wrapped and not after:
        yield f"  return {call};"
    else:
        yield from (f"  {one.wrapper()}" for one in wrapped)
        yield f"  const {kind} result = {call};"
        yield from (f"  {one.name}_.put();" for one in wrapped)
        yield from after
        yield "  return result;"
    yield "}"
    yield f"BACKSTAY_MPI_NAME({name})"


def calls(path):
    yield '#include "capture/mpi_library/names.h"'
    yield '#include "capture/mpi_library/requests.h"'
    yield "namespace backstay::mpi {"
    yield 'extern "C" {'
    for line in lines_of(path):
        result, name, rest = PROTOTYPE.match(line).groups()
        if name in BY_HAND:
            continue
        words = [] if rest in ("", "void") else rest.split(", ")
        yield from function(result, name, [Parameter(word) for word in words])
    yield "}"
    yield "}"


def indices(path):
    names = [PROTOTYPE.match(line).group(2) for line in lines_of(path)]
    yield "#pragma once"
    yield '#include "capture/lower/table.h"'
    yield "namespace backstay::mpi {"
    yield "enum : uint32_t {"
    yield from (f"  index_{name}," for name in names)
    yield "  functions_count"
    yield "};"
    yield "constexpr uint64_t sum_of_names() {"
    yield "  uint64_t sum = lower::sum_start;"
    yield from (f'  sum = lower::add_name(sum, "{name}");' for name in names)
    yield "  return sum;"
    yield "}"
    yield "}"


def objects(path):
    rows = [line.split() for line in lines_of(path)]
    yield '#include "capture/mpi_library/abi_openmpi.h"'
    yield 'extern "C" {'
    for _, name, size in rows:
        yield f'[[gnu::visibility("default")]] alignas(64) char {name}[{size}];'
    yield "}"
    yield "namespace backstay::mpi::abi {"
    yield "Objects objects() {"
    yield "  static const Object all[] = {"
    for kind, name, _ in rows:
        yield f'    {{Class::{kind}, reinterpret_cast<Slot*>(&{name}), "{name}"}},'
    yield "  };"
    yield "  return {all, sizeof all / sizeof all[0]};"
    yield "}"
    yield "}"


def main():
    what, path = sys.argv[1:]
    print(f"// Generated by generate.py {what}.")
    print("\n".join({"calls": calls, "indices": indices, "objects": objects}[what](path)))


if __name__ == "__main__":
    main()
