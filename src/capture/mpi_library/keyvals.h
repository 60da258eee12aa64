// Keyvals of the program: numbers of ours, which the real MPI never sees.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

template <Class>
struct Tag {};

// Far from the numbers that both MPIs have for their own.
inline constexpr int first_keyval = 0x40000000;
inline bool is_keyval_of_program(int keyval) {
  return keyval >= first_keyval && keyval < first_keyval + (1 << 20);
}

struct Keyval {
  Class type;  // of which objects
  void* copy;  // null: MPICH's MPI_NULL_COPY_FN
  void* remove;
  void* extra;
  uint32_t uses;  // the program's own, until it frees it, and attributes
  bool is_freed;  // by the program
};

// Null: none, freed, or of another class.
Keyval* find_keyval(Class type, int keyval);
Keyval& keyval_at(int keyval);
void use_keyval(int keyval);
void unuse_keyval(int keyval);

// The program's functions for one attribute.
template <Class Type>
int call_copy(abi::Handle<Type> handle, const Attribute& one, void** to, int* flag) {
  const Keyval own = keyval_at(one.keyval);
  if (own.copy == nullptr) {
    *flag = 0;
    return 0;
  }
  using Copy = int (*)(abi::Handle<Type>, int, void*, void*, void*, int*);
  return reinterpret_cast<Copy>(own.copy)(handle, one.keyval, own.extra, one.value, to, flag);
}
template <Class Type>
int call_delete(abi::Handle<Type> handle, const Attribute& one) {
  const Keyval own = keyval_at(one.keyval);
  if (own.remove == nullptr) return 0;
  using Delete = int (*)(abi::Handle<Type>, int, void*, void*);
  return reinterpret_cast<Delete>(own.remove)(handle, one.keyval, one.value, own.extra);
}

}  // namespace backstay::mpi
