// Keyvals of the program: numbers of ours, which the real MPI never sees.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

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
  // Of a keyval of Fortran: what calls its functions. Null: they are called as C's.
  void* copy_proxy;
  void* remove_proxy;
  uint32_t uses;  // the program's own, until it frees it, and attributes
  bool is_freed;  // by the program
};

// Null: none, freed, or of another class.
Keyval* find_keyval(Class type, int keyval);
Keyval& keyval_at(int keyval);
int create_keyval(Class type, void* copy, void* remove, void* keyval, void* extra);
void use_keyval(int keyval);
void unuse_keyval(int keyval);

// A number of Fortran's is for C what a pointer leads to.
inline void* in_c(const Attribute& one) {
  if (one.given == Given::pointer) return one.value;
  return const_cast<void*>(static_cast<const void*>(&one.value));
}

// The program's functions for one attribute.
template <Class Type>
int call_copy(abi::Handle<Type> handle, const Attribute& one, void** to, int* flag) {
  const Keyval own = keyval_at(one.keyval);
  if (own.copy == nullptr) {
    *flag = 0;
    return 0;
  }
  if (own.copy_proxy != nullptr) {
    using Proxy = int (*)(void*, abi::Handle<Type>, int, void*, Given, void*, void**, int*);
    return reinterpret_cast<Proxy>(own.copy_proxy)(own.copy, handle, one.keyval, own.extra,
                                                   one.given, one.value, to, flag);
  }
  using Copy = int (*)(abi::Handle<Type>, int, void*, void*, void*, int*);
  return reinterpret_cast<Copy>(own.copy)(handle, one.keyval, own.extra, in_c(one), to, flag);
}
template <Class Type>
int call_delete(abi::Handle<Type> handle, const Attribute& one) {
  const Keyval own = keyval_at(one.keyval);
  if (own.remove == nullptr) return 0;
  if (own.remove_proxy != nullptr) {
    using Proxy = int (*)(void*, abi::Handle<Type>, int, Given, void*, void*);
    return reinterpret_cast<Proxy>(own.remove_proxy)(own.remove, handle, one.keyval, one.given,
                                                     one.value, own.extra);
  }
  using Delete = int (*)(abi::Handle<Type>, int, void*, void*);
  return reinterpret_cast<Delete>(own.remove)(handle, one.keyval, in_c(one), own.extra);
}

}  // namespace backstay::mpi
