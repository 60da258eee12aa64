// Sends. The blocking ones stay the real MPI's: during a cut each rank that is held or waits takes
// in all that arrives, so a cut does not make any of them wait longer (docs/protocol/cut.md).
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

namespace {

using Comm = abi::Handle<Class::comm>;
using Type = abi::Handle<Class::datatype>;

// Counted when it begins.
int begin_send(uint32_t index, const Transfer& of, void* request) {
  const InCall in_call;
  const int result = of.begin(index, request);
  if (result != 0) return result;
  note_request(*static_cast<RequestHandle*>(request), Request::Kind::send);
  count_sent(communicator_of(of.comm), of.peer);
  return result;
}

}  // namespace

int send_now(uint32_t index, const Transfer& of) {
  const int result =
      beside(index, of.buffer, of.count, of.real_type(), of.peer, of.tag, of.real_comm());
  if (result == 0) count_sent(communicator_of(of.comm), of.peer);
  return result;
}

extern "C" {

#define BACKSTAY_SEND(name)                                                     \
  int P##name(void* buffer, int count, Type type, int to, int tag, Comm comm) { \
    const InCall in_call;                                                       \
    return send_now(index_##name, {buffer, count, type, to, tag, comm});        \
  }                                                                             \
  BACKSTAY_MPI_NAME(name)
#define BACKSTAY_BEGIN_SEND(name)                                                              \
  int P##name(void* buffer, int count, Type type, int to, int tag, Comm comm, void* request) { \
    return begin_send(index_##name, {buffer, count, type, to, tag, comm}, request);            \
  }                                                                                            \
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
