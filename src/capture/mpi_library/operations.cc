// The real MPI calls an operation without saying whose it is, so each function has a trampoline of
// its own.
#include "capture/mpi_library/operations.h"

#include <utility>

#include "capture/mpi_library/fortran.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"
#include "capture/mpi_library/trampolines.h"

namespace backstay::mpi {

namespace {

using Operation = void (*)(void*, void*, int*, abi::Handle<Class::datatype>*);
using LargeOperation = void (*)(void*, void*, int64_t*, abi::Handle<Class::datatype>*);
using RealOperation = void (*)(void*, void*, int*, void*);
// Of Open MPI's Fortran: the datatype is a number.
using FortranOperation = void (*)(void*, void*, int*, int*);
Function operations[trampolines];
uint32_t operations_count = 0;

template <uint32_t Index>
void operate(void* in, void* inout, int* count, void* datatype) {
  const InProgram switched;
  auto type = handle_at<Class::datatype>(datatype);
  const Function own = operations[Index];
  if (own.takes == Takes::large_count) {
    int64_t large = *count;
    reinterpret_cast<LargeOperation>(own.function)(in, inout, &large, &type);
    return;
  }
  if (own.takes == Takes::handles) {
    reinterpret_cast<Operation>(own.function)(in, inout, count, &type);
    return;
  }
  int number = number_of<Class::datatype>(type);
  reinterpret_cast<FortranOperation>(own.function)(in, inout, count, &number);
}

template <uint32_t... Index>
RealOperation operation_at(uint32_t at, std::integer_sequence<uint32_t, Index...>) {
  static constexpr RealOperation all[] = {operate<Index>...};
  return all[at];
}

struct OperationMade : Made {
  uint32_t at;  // which trampoline
  int commutes;
};

int make(uint32_t at, int commutes, uint64_t* real) {
  return inside(index_MPI_Op_create,
                operation_at(at, std::make_integer_sequence<uint32_t, trampolines>()), commutes,
                real);
}

int create(Function function, int commutes, void* op) {
  const InCall in_call;
  const uint32_t at = place_of(operations, operations_count, function);
  if (at == trampolines) return abi::err_other;
  uint64_t real = 0;
  const int result = make(at, commutes, &real);
  if (result != 0) return result;
  auto* made = new_made<OperationMade>(Class::op, real);
  made->at = at;
  made->commutes = commutes;
  *static_cast<abi::Handle<Class::op>*>(op) = handle_of_made<Class::op>(made);
  return result;
}

}  // namespace

uint64_t renew_operation(const Made* made) {
  const auto* own = static_cast<const OperationMade*>(made);
  uint64_t real = 0;
  must(make(own->at, own->commutes, &real), "an operation");
  return real;
}

extern "C" {

int PMPI_Op_create(void* function, int commutes, void* op) {
  return create({function, Takes::handles}, commutes, op);
}
BACKSTAY_MPI_NAME(MPI_Op_create)

// For large.cc, and for Open MPI's Fortran (mpifh_objects.cc).
int backstay_op_create_large(void* function, int commutes, void* op) {
  return create({function, Takes::large_count}, commutes, op);
}
int backstay_op_create_fortran(void* function, int commutes, void* op) {
  return create({function, Takes::numbers}, commutes, op);
}

}  // extern "C"

}  // namespace backstay::mpi
