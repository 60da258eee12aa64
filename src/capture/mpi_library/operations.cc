// Operations and error handlers of the program. The real MPI calls them without saying whose they
// are, so each has a trampoline of its own.
#include <utility>

#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

constexpr uint32_t trampolines = 256;

// --- operations
// ------------------------------------------------------------------------------------

using Operation = void (*)(void*, void*, int*, abi::Handle<Class::datatype>*);
using RealOperation = void (*)(void*, void*, int*, void*);
Operation operations[trampolines];
uint32_t operations_count = 0;

template <uint32_t Index>
void operate(void* in, void* inout, int* count, void* datatype) {
  const InProgram switched;
  auto type = known_handle_for<Class::datatype>(*static_cast<abi::RealElement*>(datatype));
  operations[Index](in, inout, count, &type);
}

template <uint32_t... Index>
RealOperation operation_at(uint32_t at, std::integer_sequence<uint32_t, Index...>) {
  static constexpr RealOperation all[] = {operate<Index>...};
  return all[at];
}

// --- error handlers
// --------------------------------------------------------------------------------

// Of communicators; those of files and windows go without a change of their handle, see the page.
using Handler = void (*)(abi::Handle<Class::comm>*, int*, ...);
using RealHandler = void (*)(void*, int*, ...);
Handler handlers[trampolines];
uint32_t handlers_count = 0;

template <uint32_t Index>
void handle_error(void* real, int* code, ...) {
  const InProgram switched;
  auto comm = known_handle_for<Class::comm>(*static_cast<abi::RealElement*>(real));
  handlers[Index](&comm, code);
}

template <uint32_t... Index>
RealHandler handler_at(uint32_t at, std::integer_sequence<uint32_t, Index...>) {
  static constexpr RealHandler all[] = {handle_error<Index>...};
  return all[at];
}

// The place of a function, which keeps it: a handle may outlive its free. `trampolines`: no room.
template <typename Function>
uint32_t place_of(Function* all, uint32_t& count, Function function) {
  for (uint32_t i = 0; i < count; ++i) {
    if (all[i] == function) return i;
  }
  if (count == trampolines) return trampolines;
  all[count] = function;
  return count++;
}

constexpr int err_other = abi::handles_are_pointers ? 16 : 15;
constexpr auto sequence = std::make_integer_sequence<uint32_t, trampolines>();

int create_errhandler(uint32_t index, void* function, void* errhandler) {
  const uint32_t at = place_of(handlers, handlers_count, reinterpret_cast<Handler>(function));
  if (at == trampolines) return err_other;
  Out<Class::errhandler> made(errhandler);
  const int result = call<int>(index, handler_at(at, sequence), made.place());
  made.put();
  return result;
}

}  // namespace

extern "C" {

int PMPI_Op_create(void* function, int commutes, void* op) {
  const uint32_t at = place_of(operations, operations_count, reinterpret_cast<Operation>(function));
  if (at == trampolines) return err_other;
  Out<Class::op> made(op);
  const int result =
      call<int>(index_MPI_Op_create, operation_at(at, sequence), commutes, made.place());
  made.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Op_create)

int PMPI_Comm_create_errhandler(void* function, void* errhandler) {
  return create_errhandler(index_MPI_Comm_create_errhandler, function, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Comm_create_errhandler)

int PMPI_Errhandler_create(void* function, void* errhandler) {
  return create_errhandler(index_MPI_Comm_create_errhandler, function, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Errhandler_create)

}  // extern "C"

}  // namespace backstay::mpi
