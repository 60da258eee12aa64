// The real MPI calls an error handler without saying whose it is, so each has a trampoline of its
// own.
#include "capture/mpi_library/error_handlers.h"

#include <utility>

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/fortran.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"
#include "capture/mpi_library/trampolines.h"

namespace backstay::mpi {

namespace {

// A function of the program is called with these.
template <Class Type>
using Handler = void (*)(abi::Handle<Type>*, int*, ...);
using RealHandler = void (*)(void*, int*, ...);

// Open MPI's Fortran gives the object as a number.
using FortranHandler = void (*)(int*, int*);

template <Class Type>
struct Handlers {
  Function all[trampolines];
  uint32_t count;
};
template <Class Type>
Handlers<Type> handlers;

template <Class Type, uint32_t Index>
void handle_error(void* real, int* code, ...) {
  const InProgram switched;
  auto handle = handle_at<Type>(real);
  const Function own = handlers<Type>.all[Index];
  if (own.takes == Takes::handles) {
    reinterpret_cast<Handler<Type>>(own.function)(&handle, code);
    return;
  }
  if constexpr (Type != Class::session) {
    int number = number_of<Type>(handle);
    reinterpret_cast<FortranHandler>(own.function)(&number, code);
  }
}

template <Class Type, uint32_t... Index>
RealHandler handler_at(uint32_t at, std::integer_sequence<uint32_t, Index...>) {
  static constexpr RealHandler all[] = {handle_error<Type, Index>...};
  return all[at];
}

struct HandlerMade : Made {
  uint32_t function;  // by which it is made, with the trampoline; 0: MPI itself made it
  RealHandler trampoline;
  Slot* slot;  // the only one, where the program has `handles` of it
};

template <Class Type>
int create(uint32_t index, void* function, void* errhandler, bool is_fortran) {
  const InCall in_call;
  auto& all = handlers<Type>;
  const Function own{function, is_fortran ? Takes::numbers : Takes::handles};
  const uint32_t at = place_of(all.all, all.count, own);
  if (at == trampolines) return abi::err_other;
  const RealHandler trampoline =
      handler_at<Type>(at, std::make_integer_sequence<uint32_t, trampolines>());
  uint64_t real = 0;
  const int result = inside(index, trampoline, &real);
  if (result != 0) return result;
  auto* made = new_made<HandlerMade>(Class::errhandler, real);
  made->function = index;
  made->trampoline = trampoline;
  *static_cast<abi::Handle<Class::errhandler>*>(errhandler) =
      handle_of_made<Class::errhandler>(made);
  return result;
}

int set(abi::Handle<Class::comm> handle, abi::Handle<Class::errhandler> handler) {
  const InCall in_call;
  const int result = inside(index_MPI_Comm_set_errhandler, abi::real<Class::comm>(handle),
                            abi::real<Class::errhandler>(handler));
  CommunicatorMade* made = result == 0 ? communicator(handle) : nullptr;
  if (made == nullptr) return result;
  Made* const old = made->handler.made;
  made->handler = refer_to<Class::errhandler>(handler);
  made->is_handler_set = true;
  unuse(old);
  return result;
}

}  // namespace

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

template <>
abi::Handle<Class::errhandler> handle_of_made<Class::errhandler>(Made* made) {
  auto* own = static_cast<HandlerMade*>(made);
  if (made->handles != 0) {
    ++made->handles;
  } else {
    own->slot = take_slot(Class::errhandler, made->real);
    attach(own->slot, made);
  }
  return abi::handle_of<Class::errhandler>(own->slot);
}

Made* describe_error_handler(uint64_t real) {
  Made* made = find_made(Class::errhandler, real);
  if (made == nullptr) return new_made<HandlerMade>(Class::errhandler, real);
  if (made->handles != 0) inside(index_MPI_Errhandler_free, &real);
  return made;
}

uint64_t renew_error_handler(const Made* made) {
  const auto* own = static_cast<const HandlerMade*>(made);
  uint64_t real = 0;
  must(inside(own->function, own->trampoline, &real), "an error handler");
  return real;
}

bool is_an_error_handler_unknown() {
  for (Made* made = first_made(Class::errhandler); made != nullptr; made = made->next) {
    if (static_cast<HandlerMade*>(made)->function == 0) return true;
  }
  return false;
}

extern "C" {

// The real MPI has one reference for all handles of it.
int PMPI_Errhandler_free(void* errhandler) {
  const InCall in_call;
  auto* handle = static_cast<abi::Handle<Class::errhandler>*>(errhandler);
  Made* made = handle != nullptr ? made_of<Class::errhandler>(*handle) : nullptr;
  if (made != nullptr && made->handles > 1) {
    --made->handles;
    *handle = abi::predefined<Class::errhandler>(abi::null<Class::errhandler>());
    return 0;
  }
  InOut<Class::errhandler> errhandler_(errhandler);
  const int result = inside(index_MPI_Errhandler_free, errhandler_.place());
  errhandler_.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Errhandler_free)

#define BACKSTAY_CREATE(name, class, Class_, is_fortran)                                      \
  int name(void* function, void* errhandler) {                                                \
    return create<Class::class>(index_MPI_##Class_##_create_errhandler, function, errhandler, \
                                is_fortran);                                                  \
  }
#define BACKSTAY_ERROR_HANDLERS(name, class, Class_) \
  BACKSTAY_CREATE(P##name, class, Class_, false)     \
  BACKSTAY_MPI_NAME(name)
BACKSTAY_ERROR_HANDLERS(MPI_Comm_create_errhandler, comm, Comm)
BACKSTAY_ERROR_HANDLERS(MPI_Errhandler_create, comm, Comm)
BACKSTAY_ERROR_HANDLERS(MPI_File_create_errhandler, file, File)
BACKSTAY_ERROR_HANDLERS(MPI_Win_create_errhandler, win, Win)
BACKSTAY_ERROR_HANDLERS(MPI_Session_create_errhandler, session, Session)
// For Open MPI's Fortran (mpifh_objects.cc).
BACKSTAY_CREATE(backstay_comm_create_errhandler_fortran, comm, Comm, true)
BACKSTAY_CREATE(backstay_win_create_errhandler_fortran, win, Win, true)
BACKSTAY_CREATE(backstay_file_create_errhandler_fortran, file, File, true)

int PMPI_Comm_set_errhandler(abi::Handle<Class::comm> comm,
                             abi::Handle<Class::errhandler> errhandler) {
  return set(comm, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Comm_set_errhandler)
int PMPI_Errhandler_set(abi::Handle<Class::comm> comm, abi::Handle<Class::errhandler> errhandler) {
  return set(comm, errhandler);
}
BACKSTAY_MPI_NAME(MPI_Errhandler_set)

}  // extern "C"

}  // namespace backstay::mpi
