#include "capture/mpi_library/keyvals.h"

#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

Kept<Keyval> keyvals;
uint32_t keyvals_unused = 0;

int end(Class type, uint32_t index, void* keyval) {
  const InCall in_call;
  auto* number = static_cast<int*>(keyval);
  Keyval* one = find_keyval(type, *number);
  if (one == nullptr) return inside(index, number);  // MPI names the mistake
  one->is_freed = true;
  unuse_keyval(*number);
  *number = abi::keyval_invalid;
  return 0;
}

int duplicate(uint64_t, int, void*, void* value, void* to, int* flag) {
  *static_cast<void**>(to) = value;
  *flag = 1;
  return 0;
}

}  // namespace

int create_keyval(Class type, void* copy, void* remove, void* keyval, void* extra) {
  if (copy != nullptr && reinterpret_cast<uint64_t>(copy) == abi::duplicate_function) {
    copy = reinterpret_cast<void*>(duplicate);
  }
  const Keyval one{type, copy, remove, extra, nullptr, nullptr, 1, false};
  uint32_t at = 0;
  if (keyvals_unused == 0) {
    at = keyvals.count;
    keyvals.add(one);
  } else {
    while (keyvals[at].uses != 0) ++at;
    keyvals[at] = one;
    --keyvals_unused;
  }
  *static_cast<int*>(keyval) = first_keyval + static_cast<int>(at);
  return 0;
}

Keyval& keyval_at(int keyval) { return keyvals[static_cast<uint32_t>(keyval - first_keyval)]; }

Keyval* find_keyval(Class type, int keyval) {
  if (!is_keyval_of_program(keyval)) return nullptr;
  const auto at = static_cast<uint32_t>(keyval - first_keyval);
  if (at >= keyvals.count || keyvals[at].type != type || keyvals[at].is_freed) return nullptr;
  return &keyvals[at];
}

void use_keyval(int keyval) { ++keyval_at(keyval).uses; }
void unuse_keyval(int keyval) {
  if (--keyval_at(keyval).uses == 0) ++keyvals_unused;
}

extern "C" {

#define BACKSTAY_KEYVALS(create_name, free_name, class)                                   \
  int P##create_name(void* copy, void* remove, void* keyval, void* extra) {               \
    return create_keyval(Class::class, copy, remove, keyval, extra);                      \
  }                                                                                       \
  BACKSTAY_MPI_NAME(create_name)                                                          \
  int P##free_name(void* keyval) { return end(Class::class, index_##free_name, keyval); } \
  BACKSTAY_MPI_NAME(free_name)
BACKSTAY_KEYVALS(MPI_Comm_create_keyval, MPI_Comm_free_keyval, comm)
BACKSTAY_KEYVALS(MPI_Keyval_create, MPI_Keyval_free, comm)
BACKSTAY_KEYVALS(MPI_Type_create_keyval, MPI_Type_free_keyval, datatype)
BACKSTAY_KEYVALS(MPI_Win_create_keyval, MPI_Win_free_keyval, win)

// What MPICH's Fortran library says of a keyval that it has made.
void MPII_Keyval_set_proxy(int keyval, void* copy, void* remove) {
  if (!is_keyval_of_program(keyval)) return;
  keyval_at(keyval).copy_proxy = copy;
  keyval_at(keyval).remove_proxy = remove;
}

// The functions that the standard defines, under the names that each ABI has for them.
#define BACKSTAY_DUPLICATE(name)                                                      \
  int name(uint64_t comm, int keyval, void* extra, void* from, void* to, int* flag) { \
    return duplicate(comm, keyval, extra, from, to, flag);                            \
  }
#define BACKSTAY_COPY_NOTHING(name)                         \
  int name(uint64_t, int, void*, void*, void*, int* flag) { \
    *flag = 0;                                              \
    return 0;                                               \
  }
#define BACKSTAY_DELETE_NOTHING(name) \
  int name(uint64_t, int, void*, void*) { return 0; }

#ifdef BACKSTAY_ABI_OPENMPI
#define BACKSTAY_DEFINED(kind)                           \
  BACKSTAY_DUPLICATE(OMPI_C_MPI_##kind##DUP_FN)          \
  BACKSTAY_COPY_NOTHING(OMPI_C_MPI_##kind##NULL_COPY_FN) \
  BACKSTAY_DELETE_NOTHING(OMPI_C_MPI_##kind##NULL_DELETE_FN)
BACKSTAY_DEFINED()
BACKSTAY_DEFINED(COMM_)
BACKSTAY_DEFINED(TYPE_)
BACKSTAY_DEFINED(WIN_)
#else
BACKSTAY_DUPLICATE(MPIR_Dup_fn)
#endif

}  // extern "C"

}  // namespace backstay::mpi
