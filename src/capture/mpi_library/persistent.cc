// Persistent requests of messages.
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/requests.h"
#include "capture/mpi_library/take_in.h"

namespace backstay::mpi {

namespace {

using Comm = abi::Handle<Class::comm>;
using Type = abi::Handle<Class::datatype>;
using Kind = Request::Kind;

int make(uint32_t index, Kind kind, const Transfer& of, void* to) {
  const InCall in_call;
  const int result = of.begin(index, to);
  if (result != 0) return result;
  Request* request = request_of(*static_cast<RequestHandle*>(to));
  if (request == nullptr) return result;
  clear(*request);
  request->kind = kind;
  request->is_persistent = true;
  request->make = index;
  request->set(of, communicator_of(of.comm));
  return result;
}

int start(RequestHandle handle) {
  Request* request = request_of(handle);
  const bool is_receive = request != nullptr && request->kind == Kind::receive;
  if (is_receive && !store.is_empty()) {
    Stored* one = take_stored(request->communicator, request->peer, request->tag);
    if (one != nullptr) {
      abi::Status status;
      const int error = deliver(one, request->buffer, request->count, request->type.real(), status);
      start_done(*request, status, error);
      return 0;
    }
  }
  uint64_t real = abi::real<Class::request>(handle);
  const int result = inside(index_MPI_Start, &real);
  if (result != 0 || request == nullptr) return result;
  start_noted(*request);
  if (request->kind == Kind::send) count_sent(request->communicator, request->peer);
  return result;
}

}  // namespace

extern "C" {

#define BACKSTAY_PERSISTENT(name, kind)                                                     \
  int P##name(void* buffer, int count, Type type, int peer, int tag, Comm comm, void* to) { \
    return make(index_##name, kind, {buffer, count, type, peer, tag, comm}, to);            \
  }                                                                                         \
  BACKSTAY_MPI_NAME(name)

BACKSTAY_PERSISTENT(MPI_Recv_init, Kind::receive)
BACKSTAY_PERSISTENT(MPI_Send_init, Kind::send)
BACKSTAY_PERSISTENT(MPI_Bsend_init, Kind::send)
BACKSTAY_PERSISTENT(MPI_Rsend_init, Kind::send)
BACKSTAY_PERSISTENT(MPI_Ssend_init, Kind::send)

int PMPI_Start(void* request) {
  const InCall in_call;
  return start(*static_cast<RequestHandle*>(request));
}
BACKSTAY_MPI_NAME(MPI_Start)

int PMPI_Startall(int count, void* requests) {
  const InCall in_call;
  for (int i = 0; i < count; ++i) {
    const int result = start(static_cast<RequestHandle*>(requests)[i]);
    if (result != 0) return result;
  }
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Startall)

}  // extern "C"

}  // namespace backstay::mpi
