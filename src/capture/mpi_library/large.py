"""Functions with counts of 64 bits (large.txt), each in terms of the one with int: for generate.py.

large.h says what happens to a count that is too large. Standard library only.
"""

import re

from prototypes import Argument, prototypes

# Not generated: large.cc has four, absent_mpich.txt MPI_Register_datarep_c.
BY_HAND = ("MPI_Get_count_c MPI_Op_create_c MPI_Register_datarep_c MPI_Type_get_contents_c "
           "MPI_Type_get_envelope_c").split()
# Counts of no elements, and those of operations, which take no larger datatype.
NOT_ELEMENTS = re.compile("MPI_Type_|reduce|scan|accumulate|pack", re.IGNORECASE)


def length(name, argument):
    """How many elements an array of counts or places has."""
    is_sent = argument.name.startswith("send") or argument.name == "sdispls"
    if name.startswith("MPI_Type_"):
        return "ndims" if "subarray" in name or "darray" in name else "count"
    if re.match("MPI_I?(gather|scatter)v", name, re.IGNORECASE):
        return asked("at_root(comm, root)")
    if "educe_scatter" in name:
        return asked("members_of(comm)")
    if "eighbor" in name:
        return asked(f"degrees_of(comm).{'out' if is_sent else 'in'}")
    return asked("sent(sendbuf, peers_of(comm).out)" if is_sent else "peers_of(comm).in")


def asked(expression):
    return f"ask_in_call([&] {{ return {expression}; }})"


class Pair:
    """An argument as the program gives it, and as the function with int takes it."""

    def __init__(self, function, large, small, following):
        self.large, self.small = Argument(large), Argument(small)
        self.function, self.name = function, self.large.name
        self.is_array = "[" in large
        self.is_wide = self.small.kind == "int" and self.large.kind in ("MPI_Count", "MPI_Aint")
        # The name of the datatype that this number counts; None: it counts nothing of a datatype.
        found = re.match(r"MPI_Datatype (\w+)$", following)
        counts = self.is_wide and not self.large.is_pointer and not NOT_ELEMENTS.search(function)
        self.datatype = found.group(1) if found and counts else None

    def before(self):
        """Statements, in which the argument gets its name with int."""
        if not self.is_wide:
            return
        if self.is_array:
            returns_early = self.function.startswith("MPI_I") or "_init" in self.function
            kind = "kept" if returns_early else "array"
            many = length(self.function, self.large)
            yield f"void* {self.name}_ = narrow.{kind}({self.name}, {many});"
        elif self.large.is_pointer:
            reads = self.name == "position"
            yield f"int {self.name}_ = " + (f"narrow.at({self.name});" if reads else "0;")
        elif self.datatype:
            both = f"{self.name}, {self.datatype}"
            yield f"const Elements {self.name}_ = narrow.elements({both});"
        else:
            yield f"const int {self.name}_ = narrow.one({self.name});"

    def argument(self):
        if not self.is_wide:
            return self.name
        if self.is_array:
            return f"{self.name}_"
        if self.large.is_pointer:
            return f"&{self.name}_"
        return f"{self.name}_.count" if self.datatype else f"{self.name}_"

    def after(self):
        if self.is_wide and self.large.is_pointer and not self.is_array:
            yield f"if (result == 0) *static_cast<int64_t*>({self.name}) = {self.name}_;"


def function(name, words, base, base_words):
    arguments = [Argument(word) for word in words]
    pairs = [Pair(name, *three) for three in zip(words, base_words, [*words[1:], ""])]
    assert sum(one.is_wide and one.is_array for one in pairs) <= 4, name  # Narrow::most
    given = [pair.argument() for pair in pairs]
    for i, pair in enumerate(pairs):
        if pair.datatype:
            given[i + 1] = f"{pair.name}_.type"
    declared = ", ".join(Argument(word).declared("abi::Handle") for word in base_words)
    yield f"int P{base}({declared});"
    yield f"int P{name}({', '.join(one.declared('abi::Handle') for one in arguments)}) {{"
    yield f'  Narrow narrow("{name}");'
    for pair in pairs:
        yield from (f"  {line}" for line in pair.before())
    yield "  if (!narrow.fits()) return narrow.refuse();"
    yield f"  const int result = P{base}({', '.join(given)});"
    for pair in pairs:
        yield from (f"  {line}" for line in pair.after())
    yield "  return result;"
    yield "}"
    yield f"BACKSTAY_MPI_NAME({name})"


def functions(large, small):
    """`large`, `small`: paths of large.txt and functions.txt."""
    base = {name: words for _, name, words in prototypes(small)}
    yield '#include "capture/mpi_library/large.h"'
    yield '#include "capture/mpi_library/names.h"'
    yield "namespace backstay::mpi {"
    yield 'extern "C" {'
    for _, name, words in prototypes(large):
        if name in BY_HAND:
            continue
        other = name.removesuffix("_c")
        other = other + "_x" if other + "_x" in base else other
        yield from function(name, words, other, base[other])
    yield "}"
    yield "}"
