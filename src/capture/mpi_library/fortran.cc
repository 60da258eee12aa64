// Fortran's numbers of handles. Open MPI numbers the handles that it has given, in a table that a
// restart begins anew; so slots have numbers of their own, above those of MPI's predefined handles.
// For MPICH a handle is its number.
#include "capture/mpi_library/fortran.h"

#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

constexpr int first_number = 1 << 24;

template <Class Type>
int to_fortran(uint32_t index, abi::Handle<Type> handle) {
  if constexpr (abi::handles_are_pointers) {
    const Slot* slot = abi::slot_of<Type>(handle);
    if (slot != nullptr) return first_number + static_cast<int>(slot - slots);
    if (abi::numbers_are_handles) return static_cast<int>(abi::real<Type>(handle));
    return inside(index, abi::real<Type>(handle));
  } else {
    return (int)(intptr_t)handle;  // also where it is a pointer, and this is left out
  }
}

template <Class Type>
abi::Handle<Type> from_fortran(uint32_t index, int number) {
  if constexpr (abi::handles_are_pointers) {
    const int at = number - first_number;
    const bool is_slot = at > 0 && at < static_cast<int>(slots_end()) &&
                         slots[at].type == static_cast<uint32_t>(Type);
    if (is_slot) return &slots[at];
    return abi::predefined<Type>(abi::numbers_are_handles ? static_cast<uint64_t>(number)
                                                          : inside<uint64_t>(index, number));
  } else {
    return (abi::Handle<Type>)(intptr_t)number;
  }
}

template <Class>
constexpr uint32_t index_to_fortran = 0;
template <>
constexpr uint32_t index_to_fortran<Class::comm> = index_MPI_Comm_c2f;
template <>
constexpr uint32_t index_to_fortran<Class::datatype> = index_MPI_Type_c2f;
template <>
constexpr uint32_t index_to_fortran<Class::win> = index_MPI_Win_c2f;

}  // namespace

template <Class Type>
int number_of(abi::Handle<Type> handle) {
  if constexpr (Type == Class::file) {
    return inside(index_MPI_File_c2f, abi::real<Type>(handle));  // files have MPI's numbers
  } else {
    return to_fortran<Type>(index_to_fortran<Type>, handle);
  }
}
template int number_of<Class::comm>(abi::Handle<Class::comm>);
template int number_of<Class::datatype>(abi::Handle<Class::datatype>);
template int number_of<Class::file>(abi::Handle<Class::file>);
template int number_of<Class::win>(abi::Handle<Class::win>);

extern "C" {

#define BACKSTAY_FORTRAN(name, class)                                                             \
  int PMPI_##name##_c2f(abi::Handle<Class::class> handle) {                                       \
    const InCall in_call;                                                                         \
    return to_fortran<Class::class>(index_MPI_##name##_c2f, handle);                              \
  }                                                                                               \
  BACKSTAY_MPI_NAME(MPI_##name##_c2f)                                                             \
  abi::Handle<Class::class> PMPI_##name##_f2c(int number) {                                       \
    const InCall in_call;                                                                         \
    return from_fortran<Class::class>(index_MPI_##name##_f2c, number);                            \
  }                                                                                               \
  BACKSTAY_MPI_NAME(MPI_##name##_f2c)                                                             \
  int PMPI_##name##_toint(abi::Handle<Class::class> handle) { return PMPI_##name##_c2f(handle); } \
  BACKSTAY_MPI_NAME(MPI_##name##_toint)                                                           \
  abi::Handle<Class::class> PMPI_##name##_fromint(int number) {                                   \
    return PMPI_##name##_f2c(number);                                                             \
  }                                                                                               \
  BACKSTAY_MPI_NAME(MPI_##name##_fromint)
BACKSTAY_FORTRAN(Comm, comm)
BACKSTAY_FORTRAN(Errhandler, errhandler)
BACKSTAY_FORTRAN(Group, group)
BACKSTAY_FORTRAN(Info, info)
BACKSTAY_FORTRAN(Message, message)
BACKSTAY_FORTRAN(Op, op)
BACKSTAY_FORTRAN(Request, request)
BACKSTAY_FORTRAN(Type, datatype)
BACKSTAY_FORTRAN(Win, win)

}  // extern "C"

}  // namespace backstay::mpi
