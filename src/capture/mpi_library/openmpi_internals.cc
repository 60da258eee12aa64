// What Open MPI's stock Fortran library takes from libmpi.so.40 besides MPI's functions: attributes
// and error handlers whose functions are Fortran's, and objects that it names. The names and
// arguments are Open MPI 4.1's. What would reach into its structs is in mpifh_*.cc.

#include "capture/mpi_library/fortran.h"
#include "capture/mpi_library/keyvals.h"
#include "capture/mpi_library/names.h"

extern "C" {
extern char ompi_mpi_datatype_null[], ompi_mpi_errhandler_null[];

// Addresses that mean something else than data. A program has them as common blocks, and its own
// come first.
int mpi_fortran_bottom_, mpi_fortran_in_place_;
int mpi_fortran_unweighted_, mpi_fortran_weights_empty_;
int mpi_fortran_errcodes_ignore_;
int mpi_fortran_status_ignore_[6], mpi_fortran_statuses_ignore_[6];
char mpi_fortran_argv_null_, mpi_fortran_argvs_null_;
int* MPI_F_STATUS_IGNORE = mpi_fortran_status_ignore_;
int* MPI_F_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;

// MPI is up where the stock library looks: it looks in two functions, which call ours then.
int ompi_mpi_state = 2;
bool ompi_mpi_param_check = false;
int ompi_errcode_intern_lastused;
char ompi_errcodes_intern[120], ompi_registered_datareps[64];
backstay::mpi::abi::Status ompi_status_empty = {-1, -1, 0, 0, 0};

int PMPI_Comm_call_errhandler(backstay::mpi::abi::Handle<backstay::mpi::Class::comm> comm,
                              int code);
int PMPI_Type_match_size(int typeclass, int size, void* type);
int PMPI_Abort(backstay::mpi::abi::Handle<backstay::mpi::Class::comm> comm, int code);
int MPII_Comm_set_attr(void* handle, int keyval, void* value, backstay::mpi::Given given);
int MPII_Type_set_attr(void* handle, int keyval, void* value, backstay::mpi::Given given);
int MPII_Win_set_attr(void* handle, int keyval, void* value, backstay::mpi::Given given);
void MPII_Keyval_set_proxy(int keyval, void* copy, void* remove);
int backstay_comm_create_errhandler_fortran(void* function, void* errhandler);
int backstay_win_create_errhandler_fortran(void* function, void* errhandler);
int backstay_file_create_errhandler_fortran(void* function, void* errhandler);
}

namespace backstay::mpi {

namespace {

// A function for attributes in Fortran: of MPI 1 with numbers of 4 bytes, later of 8.
template <Class Type, typename Number>
int copy_in_fortran(void* function, abi::Handle<Type> handle, int keyval, void* extra,
                    Given /*given*/, void* value, void** to, int* flag) {
  using Copy = void (*)(int*, int*, Number*, Number*, Number*, int*, int*);
  int object = number_of<Type>(handle);
  auto state = static_cast<Number>(reinterpret_cast<int64_t>(extra));
  auto from = static_cast<Number>(reinterpret_cast<int64_t>(value));
  Number made = 0;
  int result = 0;
  *flag = 0;
  reinterpret_cast<Copy>(function)(&object, &keyval, &state, &from, &made, flag, &result);
  *to = reinterpret_cast<void*>(static_cast<int64_t>(made));
  return result;
}

template <Class Type, typename Number>
int remove_in_fortran(void* function, abi::Handle<Type> handle, int keyval, Given /*given*/,
                      void* value, void* extra) {
  using Remove = void (*)(int*, int*, Number*, Number*, int*);
  int object = number_of<Type>(handle);
  auto state = static_cast<Number>(reinterpret_cast<int64_t>(extra));
  auto of = static_cast<Number>(reinterpret_cast<int64_t>(value));
  int result = 0;
  reinterpret_cast<Remove>(function)(&object, &keyval, &of, &state, &result);
  return result;
}

template <Class Type, typename Number>
int create(void* copy, void* remove, int* keyval, int64_t extra) {
  create_keyval(Type, copy, remove, keyval, reinterpret_cast<void*>(extra));
  MPII_Keyval_set_proxy(*keyval, reinterpret_cast<void*>(copy_in_fortran<Type, Number>),
                        reinterpret_cast<void*>(remove_in_fortran<Type, Number>));
  return 0;
}

// Open MPI's numbers for what has attributes and error handlers.
enum class Of : int { comm = 1, type = 2, win = 3 };
enum class HandlerOf : int { comm = 1, win = 2, file = 3 };

template <typename Number>
int create(Of of, void* copy, void* remove, int* keyval, int64_t extra) {
  if (of == Of::comm) return create<Class::comm, Number>(copy, remove, keyval, extra);
  if (of == Of::type) return create<Class::datatype, Number>(copy, remove, keyval, extra);
  return create<Class::win, Number>(copy, remove, keyval, extra);
}

int set(Of of, void* object, int keyval, int64_t number, Given given) {
  auto* value = reinterpret_cast<void*>(number);
  if (of == Of::comm) return MPII_Comm_set_attr(object, keyval, value, given);
  if (of == Of::type) return MPII_Type_set_attr(object, keyval, value, given);
  return MPII_Win_set_attr(object, keyval, value, given);
}

abi::Handle<Class::comm> world_handle() { return reinterpret_cast<Slot*>(ompi_mpi_comm_world); }

}  // namespace

extern "C" {

int ompi_attr_create_keyval_fint(Of of, void* copy, void* remove, int* keyval, int extra,
                                 int /*flags*/, void* /*freed*/) {
  return create<int>(of, copy, remove, keyval, extra);
}
int ompi_attr_create_keyval_aint(Of of, void* copy, void* remove, int* keyval, int64_t extra,
                                 int /*flags*/, void* /*freed*/) {
  return create<int64_t>(of, copy, remove, keyval, extra);
}
int ompi_attr_set_fint(Of of, void* object, void* /*table*/, int keyval, int value, bool /*own*/) {
  return set(of, object, keyval, value, Given::number);
}
int ompi_attr_set_aint(Of of, void* object, void* /*table*/, int keyval, int64_t value,
                       bool /*own*/) {
  return set(of, object, keyval, value, Given::address_number);
}
// Which object it is they do not say: mpifh_attributes.cc comes before what calls them.
int ompi_attr_get_fint(void*, int, int*, int* flag) {
  *flag = 0;
  return abi::err_other;
}
int ompi_attr_get_aint(void*, int, int64_t*, int* flag) {
  *flag = 0;
  return abi::err_other;
}

void* ompi_errhandler_create(HandlerOf of, void* function, int /*language*/) {
  void* made = ompi_mpi_errhandler_null;
  if (of == HandlerOf::comm) backstay_comm_create_errhandler_fortran(function, &made);
  if (of == HandlerOf::win) backstay_win_create_errhandler_fortran(function, &made);
  if (of == HandlerOf::file) backstay_file_create_errhandler_fortran(function, &made);
  return made;
}
int ompi_errhandler_invoke(void*, void*, int, int code, const char*) {
  PMPI_Comm_call_errhandler(world_handle(), code);
  return code;
}
void ompi_mpi_errors_are_fatal_comm_handler(void*, int* code, ...) {
  PMPI_Abort(world_handle(), code != nullptr ? *code : 1);
}

void* ompi_datatype_match_size(int size, int kind, int /*language*/) {
  enum : int { integers = 0x1000, reals = 0x2000 };  // the third: complex numbers
  const int typeclass = kind == integers ? 1 : (kind == reals ? 2 : 3);
  void* type = ompi_mpi_datatype_null;
  PMPI_Type_match_size(typeclass, size, &type);
  return type;
}

// --- the functions that the standard defines for attributes, in Fortran
#define BACKSTAY_SPELLINGS(name, lower, upper)                         \
  extern decltype(name) lower __attribute__((weak, alias(#name)));     \
  extern decltype(name) lower##_ __attribute__((weak, alias(#name)));  \
  extern decltype(name) lower##__ __attribute__((weak, alias(#name))); \
  extern decltype(name) upper __attribute__((weak, alias(#name)));

#define BACKSTAY_DEFINED(kind, KIND, Number)                                                     \
  void ompi_##kind##dup_fn_f(int*, int*, Number*, Number* value, Number* to, int* flag,          \
                             int* result) {                                                      \
    *flag = 1;                                                                                   \
    *to = *value;                                                                                \
    *result = 0;                                                                                 \
  }                                                                                              \
  BACKSTAY_SPELLINGS(ompi_##kind##dup_fn_f, mpi_##kind##dup_fn, MPI_##KIND##DUP_FN)              \
  void ompi_##kind##null_copy_fn_f(int*, int*, Number*, Number*, Number*, int* flag,             \
                                   int* result) {                                                \
    *flag = 0;                                                                                   \
    *result = 0;                                                                                 \
  }                                                                                              \
  BACKSTAY_SPELLINGS(ompi_##kind##null_copy_fn_f, mpi_##kind##null_copy_fn,                      \
                     MPI_##KIND##NULL_COPY_FN)                                                   \
  void ompi_##kind##null_delete_fn_f(int*, int*, Number*, Number*, int* result) { *result = 0; } \
  BACKSTAY_SPELLINGS(ompi_##kind##null_delete_fn_f, mpi_##kind##null_delete_fn,                  \
                     MPI_##KIND##NULL_DELETE_FN)
BACKSTAY_DEFINED(, , int)
BACKSTAY_DEFINED(comm_, COMM_, int64_t)
BACKSTAY_DEFINED(type_, TYPE_, int64_t)
BACKSTAY_DEFINED(win_, WIN_, int64_t)

int mpi_conversion_fn_null_f(void*, void*, int*, void*, void*, void*, int* result) {
  *result = 0;
  return 0;
}
BACKSTAY_SPELLINGS(mpi_conversion_fn_null_f, mpi_conversion_fn_null, MPI_CONVERSION_FN_NULL)

}  // extern "C"

}  // namespace backstay::mpi
