#!/usr/bin/env python3
"""Generate the source of the adapters between the ABIs of two MPIs.

Usage: adapt.py calls FUNCTIONS.TXT             functions that are not written by hand, as C++
       adapt.py sets CONSTANTS.TXT HANDLES.TXT FUNCTIONS.TXT     numbers of all of them: a header
       adapt.py constants CONSTANTS.TXT HANDLES.TXT SIDE MPI.H [MPIF-HANDLES.H]
                                                what this header says, as C

docs/protocol/other-mpi.md describes the adapters. Standard library only.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from prototypes import CLASSES, NUMBERS, Argument, lines_of, prototypes  # noqa: E402

# Functions of the program, texts with a limit, arrays whose length no argument says, codes:
# by_hand.cc, callbacks.cc, errors.cc, texts.cc.
BY_HAND = {
    f"MPI_{name}"
    for name in """
    Add_error_class Add_error_code Add_error_string Aint_add Aint_diff Alltoallw Alltoallw_init
    Attr_get Buffer_attach Buffer_detach Comm_c2f Comm_create_errhandler Comm_f2c Comm_get_attr
    Comm_get_name Errhandler_c2f Errhandler_create Errhandler_f2c Error_class Error_string File_c2f
    File_create_errhandler File_f2c File_get_view Get_library_version Get_processor_name
    Grequest_start Group_c2f Group_f2c Ialltoallw Ineighbor_alltoallw Info_c2f Info_f2c
    Info_get_nthkey Lookup_name Message_c2f Message_f2c Neighbor_alltoallw Neighbor_alltoallw_init
    Op_c2f Op_create Op_f2c Open_port Pcontrol Request_c2f Request_f2c Status_c2f Status_c2f08
    Status_f082c Status_f2c Type_c2f Type_create_darray Type_f2c Type_get_contents Type_get_name
    Win_c2f Win_create_errhandler Win_f2c Win_get_attr Win_get_name
    """.split()
}
# They have functions of the program or handles for which there is no translation.
REFUSED = {
    f"MPI_{name}"
    for name in """
    Comm_create_keyval Keyval_create Register_datarep Session_create_errhandler Status_f082f
    Status_f2f08 Type_create_keyval Win_create_keyval T_event_register_callback
    """.split()
}
# By the name of an argument: the set of its values.
GIVEN = {
    **dict.fromkeys(["dest", "rank", "root", "source", "target_rank"], "rank"),
    **dict.fromkeys(["recvtag", "sendtag", "tag"], "tag"),
    **dict.fromkeys(["comm_keyval", "keyval", "type_keyval", "win_keyval"], "keyval"),
    "amode": "file_mode",
    "assert": "assertion",
    "lock_type": "lock",
    "order": "order",
    "required": "thread",
    "split_type": "split_type",
    "typeclass": "type_class",
    "var_class": "variable_class",
    "whence": "whence",
}
BITS = {"assertion", "file_mode"}
# What a call writes, by function and argument; without a function: of all.
WRITTEN = {
    "amode": "file_mode",
    "bind": "bind",
    "combiner": "combiner",
    "MPI_Comm_compare result": "comparison",
    "MPI_Group_compare result": "comparison",
    "MPI_Topo_test status": "topology",
    "provided": "thread",
    "rank_dest": "rank",
    "rank_source": "rank",
    "scope": "scope",
    "var_class": "variable_class",
    "verbosity": "verbosity",
}
# Both numbers of ranks in a group.
RANKS_GIVEN, RANKS_WRITTEN = "ranks1", "ranks2"
CODES = {"errorcode", "errorclass"}


class Parameter(Argument):
    def __init__(self, function, text):
        super().__init__(text)
        self.function = function
        self.is_status = self.kind == "MPI_Status"

    def declaration(self):
        return self.declared("Front")

    def object(self):
        """One that lives during the call: its type and what it is made of."""
        way = {"in": "In", "out": "Out", "inout": "InOut"}.get(self.direction)
        length = self.length
        if self.is_status and self.is_pointer and way:
            if length == "[*]" or length == "*":
                return f"{way}Statuses", f"{self.name}, {self.array_length()}"
            return f"{way}Status", self.name
        if self.handle and self.is_pointer:
            if not length:
                way = "InOut" if way == "In" else way
                return f"{way}Handle<Class::{self.handle}>", self.name
            return f"{way}Handles<Class::{self.handle}>", f"{self.name}, {self.array_length()}"
        if self.name == RANKS_GIVEN:
            return "GivenRanks", f"{self.name}, n"
        return None

    def array_length(self):
        if self.length == "*":
            return self.counted
        if self.length == "num_elements":
            return "0"
        return self.length

    def argument(self):
        if self.object():
            return f"{self.name}_.place()"
        if self.handle and not self.is_pointer:
            return f"to_back<Class::{self.handle}>({self.name})"
        if self.is_pointer and self.name in ("sendbuf", "recvbuf"):
            return f"buffer_to_back({self.name})"
        if self.is_pointer and self.name in ("weights", "sourceweights", "destweights"):
            return f"weights_to_back({self.name})"
        if not self.is_pointer and self.kind == "MPI_T_pvar_handle":
            return f"variables_to_back({self.name})"
        if self.name in CODES and not self.is_pointer:
            return f"error_to_back({self.name})"
        of = GIVEN.get(self.name) if not self.is_pointer else None
        if of in BITS:
            return f"bits_to_back(set_{of}, {self.name})"
        if of in ("rank", "tag"):
            return f"{of}_to_back({self.name})"
        return f"to_back(set_{of}, {self.name})" if of else self.name

    def written(self):
        """What is done behind the call."""
        if not self.is_pointer:
            return None
        if self.name == RANKS_WRITTEN:
            return f"ranks_to_front(static_cast<int*>({self.name}), n);"
        if self.kind == "int" and self.name in CODES:
            return f"written_error({self.name});"
        of = WRITTEN.get(f"{self.function} {self.name}") or WRITTEN.get(self.name)
        if of in BITS:
            return f"written_bits(set_{of}, {self.name});"
        return f"written(set_{of}, {self.name});" if of else None


def parameters_of(name, words):
    parameters = [Parameter(name, word) for word in words]
    counts = [one.name for one in parameters if one.name in ("count", "incount")]
    for one in parameters:
        one.counted = counts[0] if counts else "0"
    return parameters


def function(index, result, name, parameters):
    handle = CLASSES.get(result)
    kind = f"Front<Class::{handle}>" if handle else NUMBERS.get(result, "int")
    yield f"{kind} {name}({', '.join(one.declaration() for one in parameters)}) {{"
    if handle or name in REFUSED:
        yield from (f"  (void){one.name};" for one in parameters)
        yield f"  return {'{}' if handle else f'refuse({index})'};"
        yield "}"
        return
    objects = [(one, one.object()) for one in parameters if one.object()]
    yield from (f"  {of[0]} {one.name}_({of[1]});" for one, of in objects)
    arguments = ", ".join([str(index), *(one.argument() for one in parameters)])
    yield f"  const {kind} outcome = call<{kind}>({arguments});"
    # What was given may be written back; what was made has to be known before it is looked at.
    yield from (f"  {one.name}_.put();" for one, _ in objects)
    yield from (f"  {one.written()}" for one in parameters if one.written())
    yield f"  return {'error_to_front(outcome)' if result == 'int' else 'outcome'};"
    yield "}"


def calls(path):
    yield '#include "capture/lower/adapter/arguments.h"'
    yield '#include "capture/lower/adapter/errors.h"'
    yield "namespace backstay::adapter {"
    yield 'extern "C" {'
    yield "#pragma GCC visibility push(default)"
    lines = list(prototypes(path))
    for index, (result, name, words) in enumerate(lines):
        if name not in BY_HAND:
            yield from function(index, result, name, parameters_of(name, words))
    yield "#pragma GCC visibility pop"
    yield "}"
    yield "const char* const function_names[] = {"
    yield from (f'  "{name}",' for _, name, _ in lines)
    yield "};"
    yield "}"


def rows(path):
    """Lines that begin with the same word are one row."""
    result = []
    for line in lines_of(path):
        name, *members = line.split()
        if result and result[-1][0] == name:
            result[-1] += members
        else:
            result.append([name, *members])
    return result


def sets(constants, handles, functions):
    yield "#pragma once"
    yield '#include <stdint.h>'
    yield "namespace backstay::adapter {"
    all_sets = rows(constants)
    yield "enum Set : int {"
    yield from (f"  set_{name}," for name, *_ in all_sets)
    yield "};"
    yield "struct Span { int first, count; };"
    yield "inline constexpr Span spans[] = {"
    first = 0
    for name, *members in all_sets:
        yield f"  {{{first}, {len(members)}}},  // {name}"
        first += len(members)
    yield "};"
    yield "enum Number : int {"
    seen = set()
    first = 0
    for _, *members in all_sets:
        for member in members:
            if member not in seen:
                yield f"  number_{member} = {first},"
            seen.add(member)
            first += 1
    yield "};"
    names = [(kind, member) for kind, *members in rows(handles) for member in members]
    yield "enum class Class : uint32_t {"
    yield "  comm = 1, group = 2, datatype = 3, file = 4, errhandler = 5, op = 6, info = 7,"
    yield "  win = 8, request = 11, message = 12, session = 14"
    yield "};"
    yield "struct Predefined { Class type; const char* name; };"
    yield "inline constexpr Predefined predefined[] = {"
    yield from (f'  {{Class::{kind}, "{member}"}},' for kind, member in names)
    yield "};"
    yield "enum Handle : int {"
    yield from (f"  handle_{member}," for _, member in names)
    yield "  handles_count"
    yield "};"
    yield "enum Index : uint32_t {"
    for index, (_, name, _) in enumerate(prototypes(functions)):
        yield f"  index_{name} = {index},"
    yield "  indices_count"
    yield "};"
    yield "}"


# What Open MPI's header hides from programs but the library has.
HIDDEN = """
#ifdef OPEN_MPI
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) #global
#undef MPI_COMBINER_HVECTOR_INTEGER
#undef MPI_COMBINER_HINDEXED_INTEGER
#undef MPI_COMBINER_STRUCT_INTEGER
#define MPI_COMBINER_HVECTOR_INTEGER OMPI_WAS_MPI_COMBINER_HVECTOR_INTEGER
#define MPI_COMBINER_HINDEXED_INTEGER OMPI_WAS_MPI_COMBINER_HINDEXED_INTEGER
#define MPI_COMBINER_STRUCT_INTEGER OMPI_WAS_MPI_COMBINER_STRUCT_INTEGER
#undef MPI_LB
#undef MPI_UB
#define MPI_LB "ompi_mpi_lb"
#define MPI_UB "ompi_mpi_ub"
#define MPI_REAL2 "ompi_mpi_real2"
#define BACKSTAY_HANDLE(one, fortran) {0, one, fortran}
#else
#define BACKSTAY_HANDLE(one, fortran) {(uint32_t)(unsigned long)(one), 0, fortran}
#define MPI_LOGICAL4 MPI_LOGICAL
#define MPI_CXX_COMPLEX MPI_CXX_FLOAT_COMPLEX
#endif
"""


def constants(constants_path, handles, side, header, fortran=None):
    text = "".join(
        one.read_text()
        for one in (Path(header), Path(header).with_name("mpio.h"))  # MPICH's own part for files
        if one.exists()
    )
    numbers = {}
    if fortran:
        with open(fortran) as file:
            found = re.findall(r"parameter\s*\(MPI_(\w+)\s*=\s*(-?\d+)\)", file.read())
        numbers = dict(found)
    yield "#include <mpi.h>"
    yield "#include <stddef.h>"
    yield '#include "capture/lower/adapter/sides.h"'
    yield HIDDEN
    yield "static const int numbers[] = {"
    for _, *members in rows(constants_path):
        for one in members:
            is_there = re.search(rf"\bMPI_{one}\b", text)
            yield f"  {f'MPI_{one}' if is_there else 'backstay_absent'},  // {one}"
    yield "};"
    yield "static const struct BackstayHandle handles[] = {"
    for _, *members in rows(handles):
        for one in members:
            fortran_number = numbers.get(one, "backstay_absent")
            yield f"#ifdef MPI_{one}"
            yield f"  BACKSTAY_HANDLE(MPI_{one}, {fortran_number}),"
            yield "#else"
            yield "  {0, 0, backstay_absent},"
            yield "#endif"
    yield "};"
    library = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}[side]
    name = {"mpich": "MPICH", "openmpi": "Open MPI"}[side]
    weights = "MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY" if side == "openmpi" else "0, 0"
    yield f"const struct BackstaySide backstay_{side} = {{"
    yield f'  "{name}", "{library}", numbers, handles, MPI_BOTTOM, MPI_IN_PLACE,'
    yield "  MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE, MPI_ARGV_NULL,"
    yield f"  {weights}, sizeof(MPI_Status), offsetof(MPI_Status, MPI_SOURCE),"
    yield "  offsetof(MPI_Status, MPI_TAG), offsetof(MPI_Status, MPI_ERROR)"
    yield "};"


def main():
    what, *paths = sys.argv[1:]
    print(f"// Generated by adapt.py {what}.")
    print("\n".join({"calls": calls, "sets": sets, "constants": constants}[what](*paths)))


if __name__ == "__main__":
    main()
