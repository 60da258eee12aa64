// Sends. The blocking ones stay the real MPI's: during a cut each rank that is held or waits takes
// in all that arrives, so a cut does not make any of them wait longer (docs/protocol/cut.md).
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

namespace {

using Comm = abi::Handle<Class::comm>;
using Type = abi::Handle<Class::datatype>;

int send(uint32_t index, const void* buffer, int count, Type type, int to, int tag, Comm comm) {
  const InCall in_call;
  const int result = beside(index, buffer, count, abi::real<Class::datatype>(type), to, tag,
                            abi::real<Class::comm>(comm));
  if (result == 0) count_sent(communicator_of(comm), to);
  return result;
}

// Counted when it begins.
int begin_send(uint32_t index, const void* buffer, int count, Type type, int to, int tag, Comm comm,
               void* request) {
  const InCall in_call;
  Out<Class::request> made(request);
  const int result = inside(index, buffer, count, abi::real<Class::datatype>(type), to, tag,
                            abi::real<Class::comm>(comm), made.place());
  made.put();
  if (result != 0) return result;
  note_request(*static_cast<RequestHandle*>(request), Request::Kind::send);
  count_sent(communicator_of(comm), to);
  return result;
}

}  // namespace

extern "C" {

#define BACKSTAY_SEND(name)                                                           \
  int P##name(const void* buffer, int count, Type type, int to, int tag, Comm comm) { \
    return send(index_##name, buffer, count, type, to, tag, comm);                    \
  }                                                                                   \
  BACKSTAY_MPI_NAME(name)
#define BACKSTAY_BEGIN_SEND(name)                                                   \
  int P##name(const void* buffer, int count, Type type, int to, int tag, Comm comm, \
              void* request) {                                                      \
    return begin_send(index_##name, buffer, count, type, to, tag, comm, request);   \
  }                                                                                 \
  BACKSTAY_MPI_NAME(name)

BACKSTAY_SEND(MPI_Send)
BACKSTAY_SEND(MPI_Bsend)
BACKSTAY_SEND(MPI_Rsend)
BACKSTAY_SEND(MPI_Ssend)
BACKSTAY_BEGIN_SEND(MPI_Isend)
BACKSTAY_BEGIN_SEND(MPI_Ibsend)
BACKSTAY_BEGIN_SEND(MPI_Irsend)
BACKSTAY_BEGIN_SEND(MPI_Issend)

}  // extern "C"

}  // namespace backstay::mpi
