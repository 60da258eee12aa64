#!/usr/bin/env python3
"""Generate the source of our MPI library for one ABI.

Usage: generate.py calls FUNCTIONS.TXT            functions that are not written by hand
       generate.py indices FUNCTIONS.TXT          their numbers in the table, as a header
       generate.py objects OPENMPI_OBJECTS.TXT    what Open MPI's handles are addresses of
       generate.py large LARGE.TXT FUNCTIONS.TXT  functions with counts of 64 bits
       generate.py absent ABSENT_ABI.TXT          functions that end the program with their name

It prints C++. docs/protocol/lower-half.md says what a line of FUNCTIONS.TXT is. Standard library
only.
"""

import sys
from pathlib import Path

import counted

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lower"))
import large  # noqa: E402
from prototypes import CLASSES, NUMBERS, Argument, lines_of, prototypes  # noqa: E402

# What makes and frees handles, and what a restart has to know of them: attributes.cc,
# communicators.cc, datatypes.cc, error_handlers.cc, fortran.cc, infos.cc, keyvals.cc, leftovers.cc,
# operations.cc.
BY_HAND_HANDLES = {
    f"MPI_{name}"
    for name in """
    Add_error_class Add_error_code Add_error_string Alloc_mem Attr_delete Attr_get Attr_put
    Buffer_attach Buffer_detach Comm_create_errhandler Comm_create_keyval Comm_delete_attr
    Comm_disconnect Comm_dup Comm_dup_with_info Comm_free Comm_free_keyval Comm_get_attr
    Comm_idup Comm_idup_with_info Comm_set_attr Comm_set_errhandler Comm_set_info Comm_set_name
    Errhandler_create Errhandler_free Errhandler_set
    File_create_errhandler Free_mem Grequest_start Info_delete
    Info_set Keyval_create Keyval_free Op_create 
    Session_create_errhandler Type_commit Type_create_keyval
    Type_delete_attr Type_dup Type_free Type_free_keyval Type_get_attr
    Type_get_contents Type_get_envelope Type_set_attr Type_set_name 
    Win_create_errhandler Win_create_keyval Win_delete_attr Win_free Win_free_keyval
    Win_get_attr Win_set_attr
    """.split()
} | {
    f"MPI_{name}_{way}"
    for name in "Comm Errhandler Group Info Message Op Request Type Win".split()
    for way in ("c2f", "f2c", "toint", "fromint")
}
# Each is kept as the call that it is (datatypes.h); the arrays are as long as `count` or `ndims`.
TYPE_CONSTRUCTORS = {
    f"MPI_Type_{name}"
    for name in """
    contiguous create_darray create_f90_complex create_f90_integer create_f90_real create_hindexed
    create_hindexed_block create_hvector create_indexed_block create_resized create_struct
    create_subarray hindexed hvector indexed struct vector
    """.split()
}
# Functions of the program, lengths that no argument says, the lower half's own thread, or a
# clock that begins anew: by_hand.cc.
BY_HAND = {
    "MPI_Abi_get_version",
    "MPI_Alltoallw",
    "MPI_Alltoallw_init",
    "MPI_Finalize",
    "MPI_Finalized",
    "MPI_Ialltoallw",
    "MPI_Ineighbor_alltoallw",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Initialized",
    "MPI_Is_thread_main",
    "MPI_Neighbor_alltoallw",
    "MPI_Neighbor_alltoallw_init",
    "MPI_Pcontrol",
    "MPI_Wtime",
} | counted.BY_HAND


class Parameter(Argument):
    """One argument: how the program gives it, and what the real MPI gets."""

    def __init__(self, text):
        super().__init__(text)
        # Wrapped: pointer to handles. Statuses go as they are.
        self.is_wrapped = self.handle is not None and self.is_pointer

    def declaration(self):
        return self.declared("abi::Handle")

    def may_be_special(self):
        """An address that may mean something else than an array."""
        weights = ("weights", "sourceweights", "destweights")
        return (self.is_pointer and self.name in weights) or (
            not self.is_pointer and self.kind == "MPI_T_pvar_handle"
        )

    def argument(self):
        if self.is_wrapped:
            return f"{self.name}_.place()"
        if self.handle:
            return f"abi::real<Class::{self.handle}>({self.name})"
        if self.may_be_special():
            return f"abi::real_address({self.name})"
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
    # Any of them may wait: other threads of the program may be in MPI meanwhile.
    call = f"beside<{real}>({arguments})"
    before = list(counted.before(name, parameters))
    after = list(counted.after(name, parameters))
    wrapped = [one for one in parameters if one.is_wrapped]
    for one in wrapped:
        if any(other.name == one.length and other.is_pointer for other in parameters):
            one.length = f"pointed({one.length})"
    yield f"{kind} P{name}({', '.join(one.declaration() for one in parameters)}) {{"
    if not (handle or wrapped or before or after):
        in_callback = f"call_with<{real}>(fs, {arguments})"
        yield f"  if (const uint64_t fs = callback_fs()) return {in_callback};"
    # Before a real handle is read. A collective call is entered by what counts it.
    if not counted.is_collective(name):
        yield "  const InCall in_call;"
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


def letter(parameter):
    """Of an argument of a datatype's constructor, as datatypes.h names them."""
    if parameter.handle:
        return "T" if parameter.is_pointer else "t"
    if not parameter.is_pointer:
        return "n"
    return {"int": "i", "MPI_Aint": "a"}[parameter.kind]


def type_constructor(name, parameters):
    *given, made = parameters
    shape = "".join(letter(one) for one in given)
    words = ", ".join(f"word({one.name})" for one in given)
    lengths = [one.name for one in given if one.name in ("count", "ndims")]
    length = lengths[0] if lengths else "0"
    yield f"int P{name}({', '.join(one.declaration() for one in parameters)}) {{"
    yield "  const InCall in_call;"
    yield f'  return construct_type(index_{name}, "{shape}", {{{words}}}, {length}, {made.name});'
    yield "}"
    yield f"BACKSTAY_MPI_NAME({name})"


def calls(path):
    yield '#include "capture/mpi_library/datatypes.h"'
    yield '#include "capture/mpi_library/names.h"'
    yield '#include "capture/mpi_library/requests.h"'
    yield "namespace backstay::mpi {"
    yield 'extern "C" {'
    for result, name, words in prototypes(path):
        if name in BY_HAND or name in BY_HAND_HANDLES:
            continue
        parameters = [Parameter(word) for word in words]
        if name in TYPE_CONSTRUCTORS:
            yield from type_constructor(name, parameters)
        else:
            yield from function(result, name, parameters)
    yield "}"
    yield "}"


def indices(path):
    names = [name for _, name, _ in prototypes(path)]
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


def absent(path):
    yield '#include "capture/mpi_library/absent.h"'
    yield 'extern "C" {'
    for name in lines_of(path):
        yield f'void {name}() {{ backstay::mpi::end_at_absent("{name}"); }}'
    yield "}"


def main():
    what, *paths = sys.argv[1:]
    print(f"// Generated by generate.py {what}.")
    kinds = {"absent": absent, "calls": calls, "indices": indices, "objects": objects,
             "large": large.functions}
    print("\n".join(kinds[what](*paths)))


if __name__ == "__main__":
    main()
