// Datatypes: the call that made each, and the types on which it is built.
#pragma once

#include <initializer_list>

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

// An argument of a constructor as one word.
inline uint64_t word(int value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }
inline uint64_t word(int64_t value) { return static_cast<uint64_t>(value); }
inline uint64_t word(uint32_t value) { return value; }
inline uint64_t word(const void* value) { return reinterpret_cast<uint64_t>(value); }

// Calls a constructor and describes what it made. `shape` has a letter for each argument but the
// last: n number, i array of int, a array of MPI_Aint, t datatype, T array of datatypes. Arrays
// have `length` elements.
int construct_type(uint32_t function, const char* shape, std::initializer_list<uint64_t> given,
                   int length, void* newtype);

// Null: MPI_DATATYPE_NULL, or no datatype. One of MPI's own has a descriptor from this call on.
Made* datatype(abi::Handle<Class::datatype> handle);

// Of a type that MPI gave without a call of the program that makes it.
Made* describe_datatype(uint64_t real);

// In the order in which they were made, which is one in which they can be made.
void renew_datatypes();
// Whether one is alive that only MPI knows how to make.
bool is_a_datatype_unknown();

}  // namespace backstay::mpi
