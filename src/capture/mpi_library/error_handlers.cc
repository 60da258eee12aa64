// The real MPI calls an error handler without saying whose it is, so each has a trampoline of its
// own.
#include "capture/mpi_library/error_handlers.h"

#include <utility>

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"
#include "capture/mpi_library/trampolines.h"

namespace backstay::mpi {

namespace {

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

struct HandlerMade : Made {
  uint32_t at;  // which trampoline
};

int make(uint32_t at, uint64_t* real) {
  return inside(index_MPI_Comm_create_errhandler,
                handler_at(at, std::make_integer_sequence<uint32_t, trampolines>()), real);
}

int create(void* function, void* errhandler) {
  const uint32_t at = place_of(handlers, handlers_count, reinterpret_cast<Handler>(function));
  if (at == trampolines) return abi::err_other;
  uint64_t real = 0;
  const int result = make(at, &real);
  if (result != 0) return result;
  auto* made = new_made<HandlerMade>(Class::errhandler, real);
  made->at = at;
  *static_cast<abi::Handle<Class::errhandler>*>(errhandler) =
      handle_of_made<Class::errhandler>(made);
  return result;
}

int set(uint32_t index, abi::Handle<Class::comm> handle, abi::Handle<Class::errhandler> handler) {
  const int result =
      inside(index, abi::real<Class::comm>(handle), abi::real<Class::errhandler>(handler));
  CommunicatorMade* made = result == 0 ? communicator(handle) : nullptr;
  if (made == nullptr) return result;
  Made* const old = made->handler.made;
  made->handler = handler_for(handler);
  unuse(old);
  return result;
}

}  // namespace

ErrorHandler handler_for(abi::Handle<Class::errhandler> handle) {
  const Slot* slot = abi::slot_of<Class::errhandler>(handle);
  if (slot == nullptr) return {nullptr, handle};
  use(made_of(slot));
  return {made_of(slot), {}};
}

ErrorHandler handler_of(uint64_t real_comm) {
  uint64_t real = 0;
  inside(index_MPI_Comm_get_errhandler, real_comm, &real);
  if (abi::is_predefined<Class::errhandler>(real)) {
    return {nullptr, abi::predefined<Class::errhandler>(real)};
  }
  Made* made = find_made(Class::errhandler, real);
  if (made == nullptr) {
    return {nullptr, abi::predefined<Class::errhandler>(abi::errors_are_fatal())};
  }
  use(made);
  inside(index_MPI_Errhandler_free, &real);  // the communicator keeps its own
  return {made, {}};
}

Made* describe_error_handler(uint64_t real) {
  Made* made = find_made(Class::errhandler, real);
  if (made == nullptr) return new_made<HandlerMade>(Class::errhandler, real);
  if (made->handles != 0) inside(index_MPI_Errhandler_free, &real);
  return made;
}

uint64_t renew_error_handler(const Made* made) {
  uint64_t real = 0;
  must(make(static_cast<const HandlerMade*>(made)->at, &real), "an error handler");
  return real;
}

extern "C" {

// MPI has one reference for all handles of it.
int PMPI_Errhandler_free(void* errhandler) {
  const InCall in_call;
  auto* handle = static_cast<abi::Handle<Class::errhandler>*>(errhandler);
  Slot* slot = handle != nullptr ? abi::slot_of<Class::errhandler>(*handle) : nullptr;
  if (slot != nullptr && made_of(slot) != nullptr && made_of(slot)->handles > 1) {
    detach(slot);
    give_back(slot);
    *handle = abi::predefined<Class::errhandler>(abi::no_error_handler());
    return 0;
  }
  InOut<Class::errhandler> errhandler_(errhandler);
  const int result = inside(index_MPI_Errhandler_free, errhandler_.place());
  errhandler_.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Errhandler_free)

int PMPI_Comm_create_errhandler(void* function, void* errhandler) {
  const InCall in_call;
  return create(function, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Comm_create_errhandler)

int PMPI_Errhandler_create(void* function, void* errhandler) {
  const InCall in_call;
  return create(function, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Errhandler_create)

int PMPI_Comm_set_errhandler(abi::Handle<Class::comm> comm,
                             abi::Handle<Class::errhandler> errhandler) {
  const InCall in_call;
  return set(index_MPI_Comm_set_errhandler, comm, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Comm_set_errhandler)

int PMPI_Errhandler_set(abi::Handle<Class::comm> comm, abi::Handle<Class::errhandler> errhandler) {
  const InCall in_call;
  return set(index_MPI_Comm_set_errhandler, comm, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Errhandler_set)

}  // extern "C"

}  // namespace backstay::mpi
