// Receives: the store first, then the real MPI.
#include <stdlib.h>

#include "capture/mpi_library/loop.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/own_errors.h"
#include "capture/mpi_library/take_in.h"

namespace backstay::mpi {

namespace {

using Comm = abi::Handle<Class::comm>;
using Type = abi::Handle<Class::datatype>;

Stored* find(const Transfer& receive) {
  if (store.is_empty()) return nullptr;
  return take_stored(communicator_of(receive.comm), receive.peer, receive.tag);
}

int take(Stored* one, const Transfer& receive, void* to) {
  abi::Status status;
  const int result = deliver(one, receive.buffer, receive.count, receive.real_type(), status);
  copy_status(status, to);
  return result;
}

void count(const Communicator* in, int source) {
  count_taken_in(in, source);
  count_taken(in, source);
}

// `between`: what is done when the receive is posted.
template <typename Between>
int receive_now(const Transfer& receive, void* status, Between between) {
  uint64_t real = 0;
  int is_complete = 0;
  abi::Status own{};
  auto* place = abi::is_ignored(status) ? &own : static_cast<abi::Status*>(status);
  int result = receive.call(index_MPI_Irecv, &real);
  if (result != 0) return result;
  const int sent = between();
  Communicator* in = communicator_of(receive.comm);
  OwnErrors errors(in);
  result = test_in_lower(is_complete,
                         [&] { return native(index_MPI_Test, &real, &is_complete, place); });
  errors.raise(result);
  if (is_complete == 0 && result == 0) {
    auto handle = handle_for<Class::request>(real);
    note_receive(handle, receive, in);
    request_of(handle)->is_blocking = true;
    result = wait_slowly(handle, status);
  } else {
    count(in, receive.peer == abi::any_source ? place->source : receive.peer);
  }
  return sent != 0 ? sent : result;
}

// A receive from MPI_PROC_NULL does not block, and MPICH writes its status in MPI_Recv alone.
int receive_nothing(const Transfer& receive, void* status) {
  return receive.call(index_MPI_Recv, status);
}

int receive(const Transfer& receive, void* status) {
  if (receive.peer == abi::process_null) return receive_nothing(receive, status);
  if (Stored* one = find(receive)) return take(one, receive, status);
  return receive_now(receive, status, [] { return 0; });
}

int exchange(const Transfer& sent, const Transfer& receive, void* status) {
  const auto send = [&] { return send_now(index_MPI_Send, sent); };
  if (receive.peer == abi::process_null) {
    const int result = send();
    const int received = receive_nothing(receive, status);
    return result != 0 ? result : received;
  }
  if (Stored* one = find(receive)) {
    const int result = send();
    const int received = take(one, receive, status);
    return result != 0 ? result : received;
  }
  return receive_now(receive, status, send);
}

}  // namespace

extern "C" {

int PMPI_Recv(void* buffer, int count, Type type, int source, int tag, Comm comm, void* status) {
  const InCall in_call;
  return receive({buffer, count, type, source, tag, comm}, status);
}
BACKSTAY_MPI_NAME(MPI_Recv)

int PMPI_Irecv(void* buffer, int count, Type type, int source, int tag, Comm comm, void* request) {
  const InCall in_call;
  const Transfer receive{buffer, count, type, source, tag, comm};
  if (Stored* one = find(receive)) {
    abi::Status status;
    const int error = deliver(one, buffer, count, receive.real_type(), status);
    *static_cast<RequestHandle*>(request) = done_request(status, error);
    return 0;
  }
  const int result = receive.begin(index_MPI_Irecv, request);
  if (result != 0) return result;
  note_receive(*static_cast<RequestHandle*>(request), receive, communicator_of(comm));
  return result;
}
BACKSTAY_MPI_NAME(MPI_Irecv)

int PMPI_Sendrecv(void* send_buffer, int send_count, Type send_type, int to, int send_tag,
                  void* buffer, int count, Type type, int source, int tag, Comm comm,
                  void* status) {
  const InCall in_call;
  return exchange({send_buffer, send_count, send_type, to, send_tag, comm},
                  {buffer, count, type, source, tag, comm}, status);
}
BACKSTAY_MPI_NAME(MPI_Sendrecv)

// What is sent is copied first.
int PMPI_Sendrecv_replace(void* buffer, int count, Type type, int to, int send_tag, int source,
                          int tag, Comm comm, void* status) {
  const InCall in_call;
  const uint64_t real_type = abi::real<Class::datatype>(type);
  const uint64_t real_comm = abi::real<Class::comm>(comm);
  int room = 0;
  int packed = 0;
  int result = inside(index_MPI_Pack_size, count, real_type, real_comm, &room);
  if (result != 0) return result;
  void* copy = malloc(static_cast<size_t>(room) + 1);
  if (copy == nullptr) abort();
  result = inside(index_MPI_Pack, buffer, count, real_type, copy, room, &packed, real_comm);
  if (result == 0) {
    result = exchange(
        {copy, packed, abi::predefined<Class::datatype>(abi::packed()), to, send_tag, comm},
        {buffer, count, type, source, tag, comm}, status);
  }
  free(copy);
  return result;
}
BACKSTAY_MPI_NAME(MPI_Sendrecv_replace)

}  // extern "C"

}  // namespace backstay::mpi
