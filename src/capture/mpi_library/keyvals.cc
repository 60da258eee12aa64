// Attributes with functions of the program that copy and delete them. The extra state, which MPI
// hands to them, leads to the program's functions and its own extra state.
#include <stdlib.h>

#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

template <Class Type>
struct Keyval {
  using Copy = int (*)(abi::Handle<Type>, int, void*, void*, void*, int*);
  using Delete = int (*)(abi::Handle<Type>, int, void*, void*);
  Copy copy;
  Delete remove;
  void* extra;
};

template <Class Type>
int copy(uint64_t real, int keyval, void* extra, void* value, void* to, int* flag) {
  const InProgram switched;
  const auto& own = *static_cast<Keyval<Type>*>(extra);
  if (own.copy == nullptr) {  // MPICH's MPI_NULL_COPY_FN
    *flag = 0;
    return 0;
  }
  return own.copy(known_handle_for<Type>(real_result<Type>(real)), keyval, own.extra, value, to,
                  flag);
}

template <Class Type>
int remove(uint64_t real, int keyval, void* value, void* extra) {
  const InProgram switched;
  const auto& own = *static_cast<Keyval<Type>*>(extra);
  if (own.remove == nullptr) return 0;
  return own.remove(known_handle_for<Type>(real_result<Type>(real)), keyval, value, own.extra);
}

// It stays as long as the process: attributes may live longer than their keyval.
template <Class Type>
int create(uint32_t index, void* copy_function, void* delete_function, void* keyval, void* extra) {
  auto* own = static_cast<Keyval<Type>*>(malloc(sizeof(Keyval<Type>)));
  if (own == nullptr) abort();
  own->copy = reinterpret_cast<typename Keyval<Type>::Copy>(copy_function);
  own->remove = reinterpret_cast<typename Keyval<Type>::Delete>(delete_function);
  own->extra = extra;
  return call<int>(index, copy<Type>, remove<Type>, keyval, own);
}

int duplicate(void* value, void* to, int* flag) {
  *flag = 1;
  *static_cast<void**>(to) = value;
  return 0;
}

}  // namespace

extern "C" {

int PMPI_Comm_create_keyval(void* copy_function, void* delete_function, void* keyval, void* extra) {
  return create<Class::comm>(index_MPI_Comm_create_keyval, copy_function, delete_function, keyval,
                             extra);
}
BACKSTAY_MPI_NAME(MPI_Comm_create_keyval)

int PMPI_Keyval_create(void* copy_function, void* delete_function, void* keyval, void* extra) {
  return create<Class::comm>(index_MPI_Comm_create_keyval, copy_function, delete_function, keyval,
                             extra);
}
BACKSTAY_MPI_NAME(MPI_Keyval_create)

int PMPI_Type_create_keyval(void* copy_function, void* delete_function, void* keyval, void* extra) {
  return create<Class::datatype>(index_MPI_Type_create_keyval, copy_function, delete_function,
                                 keyval, extra);
}
BACKSTAY_MPI_NAME(MPI_Type_create_keyval)

int PMPI_Win_create_keyval(void* copy_function, void* delete_function, void* keyval, void* extra) {
  return create<Class::win>(index_MPI_Win_create_keyval, copy_function, delete_function, keyval,
                            extra);
}
BACKSTAY_MPI_NAME(MPI_Win_create_keyval)

// The functions that the standard defines, under the names that each ABI has for them.
#define BACKSTAY_DUPLICATE(name)                                     \
  int name(uint64_t, int, void*, void* value, void* to, int* flag) { \
    return duplicate(value, to, flag);                               \
  }
#define BACKSTAY_COPY_NOTHING(name)                         \
  int name(uint64_t, int, void*, void*, void*, int* flag) { \
    *flag = 0;                                              \
    return 0;                                               \
  }
#define BACKSTAY_DELETE_NOTHING(name) \
  int name(uint64_t, int, void*, void*) { return 0; }

#ifdef BACKSTAY_ABI_OPENMPI
BACKSTAY_DUPLICATE(OMPI_C_MPI_DUP_FN)
BACKSTAY_DUPLICATE(OMPI_C_MPI_COMM_DUP_FN)
BACKSTAY_DUPLICATE(OMPI_C_MPI_TYPE_DUP_FN)
BACKSTAY_DUPLICATE(OMPI_C_MPI_WIN_DUP_FN)
BACKSTAY_COPY_NOTHING(OMPI_C_MPI_NULL_COPY_FN)
BACKSTAY_COPY_NOTHING(OMPI_C_MPI_COMM_NULL_COPY_FN)
BACKSTAY_COPY_NOTHING(OMPI_C_MPI_TYPE_NULL_COPY_FN)
BACKSTAY_COPY_NOTHING(OMPI_C_MPI_WIN_NULL_COPY_FN)
BACKSTAY_DELETE_NOTHING(OMPI_C_MPI_NULL_DELETE_FN)
BACKSTAY_DELETE_NOTHING(OMPI_C_MPI_COMM_NULL_DELETE_FN)
BACKSTAY_DELETE_NOTHING(OMPI_C_MPI_TYPE_NULL_DELETE_FN)
BACKSTAY_DELETE_NOTHING(OMPI_C_MPI_WIN_NULL_DELETE_FN)
#else
BACKSTAY_DUPLICATE(MPIR_Dup_fn)
#endif

}  // extern "C"

}  // namespace backstay::mpi
