// What the library knows of each request of the program, beside its slot: enough to count its
// message when it is complete, to complete it during a cut in place of the program, and to begin it
// once more in another process.
#pragma once

#include "capture/mpi_library/counters.h"
#include "capture/mpi_library/handles.h"
#include "capture/mpi_library/store.h"

namespace backstay::mpi {

// The arguments of a call that sends or receives.
struct Transfer {
  void* buffer;
  int count;
  abi::Handle<Class::datatype> type;
  int peer, tag;
  abi::Handle<Class::comm> comm;

  uint64_t real_type() const { return abi::real<Class::datatype>(type); }
  uint64_t real_comm() const { return abi::real<Class::comm>(comm); }
  // The call by its number, with one more argument behind these.
  template <typename More>
  int call(uint32_t index, More more) const {
    return inside(index, buffer, count, real_type(), peer, tag, real_comm(), more);
  }
  // For a call that makes a request.
  int begin(uint32_t index, void* request) const {
    Out<Class::request> made(request);
    const int result = call(index, made.place());
    made.put();
    return result;
  }
};
// A blocking send, counted.
int send_now(uint32_t index, const Transfer& of);

struct Request {
  enum class Kind : uint8_t { other, send, receive, collective };
  Kind kind;
  bool is_persistent;
  bool is_active;
  bool is_done;       // complete, and the program does not know it yet: `status` and `error`
  bool is_cancelled;  // the program has asked for it
  bool is_orphan;     // the program has freed it
  bool makes_communicator;
  bool is_blocking;  // a receive in which the program waits: its errors are its communicator's
  bool is_taken;     // done, and its message is counted as taken, or there is none
  int error;
  uint64_t sequence;  // of its begin, among receives
  // Of a receive, and of one that is persistent. `make`: the function's number in the table.
  uint32_t make;
  int count, peer, tag;
  void* buffer;
  Reference<Class::datatype> type;  // the program may have freed its handle
  Communicator* communicator;
  abi::Status status;

  void set(const Transfer& to, Communicator* in) {
    buffer = to.buffer;
    count = to.count;
    type = refer_to<Class::datatype>(to.type);
    peer = to.peer;
    tag = to.tag;
    communicator = in;
  }
};

using RequestHandle = abi::Handle<Class::request>;

// Lets go of what it keeps.
void clear(Request& request);

// Behind a call that has made a request. Null: it has no slot.
Request* note_request(RequestHandle handle, Request::Kind kind);
// The one of a handle; null where nothing is known of it.
Request* request_of(RequestHandle handle);
void note_receive(RequestHandle handle, const Transfer& of, Communicator* in);
// A request that is complete from its begin: its message came out of the store.
RequestHandle done_request(const abi::Status& status, int error);
// A persistent one is begun: by a message out of the store, or by the real MPI.
void start_done(Request& request, const abi::Status& status, int error);
void start_noted(Request& request);

// How many requests the real MPI cannot be asked for alone: done and not yet known to the program,
// or cancelled.
uint32_t held_back_requests();

// The program sees its end just now: counts the message. Before its slot is given back. `source`:
// of the status.
void complete(RequestHandle handle, int source);

// All of the following in a call that is counted.
// Tests it, where it is not done yet. True: it is.
bool poll(RequestHandle handle);
// Gives the program what a done one has: its status, and the null handle where it is not
// persistent. Returns its error.
int hand_over(RequestHandle& handle, void* status);
// As MPI does it: the field of the error stays.
void copy_status(const abi::Status& from, void* to);
// The status that MPI gives where there is no request.
void set_empty(abi::Status& status);
// It waits for nothing: null, or persistent and not started.
bool is_idle(RequestHandle handle);
// MPI_Request_free and MPI_Cancel of a handle that has a slot.
void free_request(RequestHandle& handle);
int cancel_request(RequestHandle handle);

// During a cut: all that are open. True: one has changed.
bool drive_requests();
// For generated functions: what a call has made.
inline RequestHandle made_request(const void* request) {
  return *static_cast<const RequestHandle*>(request);
}
// In another process: begins all open receives and makes all persistent requests.
void renew_requests();
// Before a communicator is freed: requests of it keep what they need of it, and no cut comes
// until they have ended.
void keep_for_requests(Communicator& of);
// How often this process was brought back.
uint64_t lives();

}  // namespace backstay::mpi
