#include "capture/mpi_library/requests.h"

#include <stdlib.h>
#include <string.h>

#include "capture/mpi_library/chunks.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/own_errors.h"
#include "capture/mpi_library/take_in.h"

namespace backstay::mpi {

namespace {

using Kind = Request::Kind;

Chunks<Request> by_slot;
uint64_t sequence = 0;
uint32_t held_back = 0;
uint64_t renewals = 0;

uint64_t null_request() { return abi::null<Class::request>(); }

void add_open_collective(int by) {
  lower::channel().open_collectives =
      static_cast<uint32_t>(static_cast<int>(lower::channel().open_collectives) + by);
}

bool was_cancelled(const abi::Status& status) {
  int flag = 0;
  inside(index_MPI_Test_cancelled, &status, &flag);
  return flag != 0;
}

// Whose message it has received. MPICH 4.0 writes nothing into the status of a receive from
// MPI_PROC_NULL: it would count as one of rank 0.
int source_of(const Request& request, const abi::Status& status) {
  return request.peer == abi::any_source ? status.source : request.peer;
}

// Its end is known: what the companion counts.
void count_end(Request& request, int source, bool is_taken) {
  if (request.kind == Kind::collective) {
    add_open_collective(-1);
    if (request.makes_communicator) let_go(Open::duplicate);
  }
  if (request.kind != Kind::receive) return;
  count_taken_in(request.communicator, source);
  if (is_taken) count_taken(request.communicator, source);
}

void let_go_of_communicator(Communicator* of) {
  if (of == nullptr || of->kept_by == 0 || --of->kept_by != 0) return;
  free(of->world);
  free(of);
  let_go(Open::freed_communicator);
}

void forget(Request& request) {
  if (request.is_persistent) {
    request.is_active = request.is_done = request.is_cancelled = request.is_taken = false;
  } else {
    clear(request);
  }
}

// An image may hold it, and only classes are the same in each MPI.
int class_of(int error) {
  int result = error;
  if (error != 0) inside(index_MPI_Error_class, error, &result);
  return result;
}

void set_done(Request& request, const abi::Status& status, int error) {
  request.status = status;
  request.error = class_of(error);
  if (!request.is_done && !request.is_cancelled) ++held_back;
  request.is_done = true;
}

// It is complete at its begin in this process: its message was taken in before the cut.
void end_send(Slot& slot, Request& request) {
  abi::Status status;
  set_empty(status);
  set_done(request, status, 0);
  if (!request.is_persistent) slot.real = null_request();
}

template <typename Visit>
void for_each(Visit visit) {
  for (uint32_t i = 1; i < slots_end(); ++i) {
    Slot& slot = slots[i];
    if (slot.type == static_cast<uint32_t>(Class::request)) visit(slot, by_slot.at(&slot));
  }
}

void drop(Slot& slot, Request& request) {
  if (request.is_persistent) inside(index_MPI_Request_free, &slot.real);
  if (request.is_done || request.is_cancelled) --held_back;
  clear(request);
  give_back(&slot);
}

bool poll(Slot& slot, Request& request) {
  if (request.is_done) return true;
  int is_complete = 0;
  abi::Status status;
  memset(&status, 0, sizeof status);
  OwnErrors errors(request.is_blocking ? request.communicator : nullptr);
  const int error = errors.raise(inside(index_MPI_Test, &slot.real, &is_complete, &status));
  if (error == 0 && is_complete == 0) return false;
  const bool is_gone = request.is_cancelled && was_cancelled(status);
  if (!is_gone) count_end(request, source_of(request, status), false);
  set_done(request, status, error);
  request.is_taken = is_gone;
  return true;
}

void renew(Slot& slot, Request& request) {
  const uint64_t comm =
      request.communicator != nullptr ? abi::real<Class::comm>(request.communicator->handle) : 0;
  const auto make = [&] {
    inside(request.make, request.buffer, request.count, request.type.real(), request.peer,
           request.tag, comm, &slot.real);
  };
  if (request.is_persistent) {
    make();
    if (!request.is_active || request.is_done) return;
    if (request.kind == Kind::send) return end_send(slot, request);
    inside(index_MPI_Start, &slot.real);
  } else if (request.is_done) {
    slot.real = null_request();
  } else if (request.kind == Kind::send) {
    end_send(slot, request);
  } else if (request.kind == Kind::receive) {
    make();
  }
}

int by_sequence(const void* a, const void* b) {
  return compare(by_slot.at(*static_cast<Slot* const*>(a)).sequence,
                 by_slot.at(*static_cast<Slot* const*>(b)).sequence);
}

}  // namespace

void set_empty(abi::Status& status) {
  uint64_t none = null_request();
  int flag = 0;
  inside(index_MPI_Test, &none, &flag, &status);
}

void clear(Request& request) {
  unuse(request.type.made);
  let_go_of_communicator(request.communicator);
  request = Request{};
}

void keep_for_requests(Communicator& of) {
  Communicator* kept = nullptr;
  for_each([&](Slot&, Request& request) {
    if (request.communicator != &of) return;
    if (kept == nullptr) {
      kept = static_cast<Communicator*>(malloc(sizeof of));
      if (kept == nullptr) abort();
      *kept = of;
      of.world = nullptr;  // it is the copy's
      hold_back(Open::freed_communicator);
    }
    ++kept->kept_by;
    request.communicator = kept;
  });
}

Request* request_of(RequestHandle handle) {
  const Slot* slot = abi::slot_of<Class::request>(handle);
  return slot != nullptr ? &by_slot.at(slot) : nullptr;
}

Request* note_request(RequestHandle handle, Kind kind) {
  Request* request = request_of(handle);
  if (request == nullptr) return nullptr;
  request->kind = kind;
  request->is_active = true;
  if (kind == Kind::collective) add_open_collective(1);
  return request;
}

void note_receive(RequestHandle handle, const Transfer& of, Communicator* in) {
  Request* request = note_request(handle, Kind::receive);
  if (request == nullptr) return;
  request->set(of, in);
  request->make = index_MPI_Irecv;
  request->sequence = ++sequence;
}

RequestHandle done_request(const abi::Status& status, int error) {
  Slot* slot = take_slot(Class::request, null_request());
  Request& request = by_slot.at(slot);
  clear(request);
  set_done(request, status, error);
  return abi::handle_of<Class::request>(slot);
}

void start_done(Request& request, const abi::Status& status, int error) {
  request.is_active = true;
  set_done(request, status, error);
  request.is_taken = true;
}

void start_noted(Request& request) {
  request.is_active = true;
  request.sequence = ++sequence;
}

uint32_t held_back_requests() { return held_back; }

void complete(RequestHandle handle, int source) {
  Request* request = request_of(handle);
  if (request == nullptr || !request->is_active) return;
  count_end(*request, source, true);
  forget(*request);
}

bool poll(RequestHandle handle) {
  Slot* slot = abi::slot_of<Class::request>(handle);
  return slot == nullptr || poll(*slot, by_slot.at(slot));
}

void copy_status(const abi::Status& from, void* to) {
  if (abi::is_ignored(to)) return;
  auto& status = *static_cast<abi::Status*>(to);
  const int error = status.error;
  status = from;
  status.error = error;
}

int hand_over(RequestHandle& handle, void* status) {
  Slot* slot = abi::slot_of<Class::request>(handle);
  Request& request = by_slot.at(slot);
  copy_status(request.status, status);
  const int error = request.error;
  if (request.kind == Kind::receive && !request.is_taken) {
    count_taken(request.communicator, source_of(request, request.status));
  }
  --held_back;
  forget(request);
  if (!request.is_persistent) {
    give_back(slot);
    handle = abi::predefined<Class::request>(null_request());
  }
  return error;
}

bool is_idle(RequestHandle handle) {
  const Slot* slot = abi::slot_of<Class::request>(handle);
  if (slot == nullptr) return true;
  const Request& request = by_slot.at(slot);
  if (request.is_persistent) return !request.is_active;
  return !request.is_done && abi::is_null<Class::request>(slot->real);
}

void free_request(RequestHandle& handle) {
  Slot* slot = abi::slot_of<Class::request>(handle);
  Request& request = by_slot.at(slot);
  handle = abi::predefined<Class::request>(null_request());
  if (request.kind == Kind::receive && request.is_active && !request.is_done) {
    request.is_orphan = true;
  } else if (!request.is_persistent && !request.is_done) {
    inside(index_MPI_Request_free, &slot->real);
    if (request.is_cancelled) --held_back;
    clear(request);
    give_back(slot);
  } else {
    drop(*slot, request);
  }
}

int cancel_request(RequestHandle handle) {
  Slot* slot = abi::slot_of<Class::request>(handle);
  Request& request = by_slot.at(slot);
  if (request.is_done) return 0;
  if (request.kind == Kind::send) refuse("it has cancelled a message that it sent");
  if (!request.is_cancelled) ++held_back;
  request.is_cancelled = true;
  return inside(index_MPI_Cancel, &slot->real);
}

bool drive_requests() {
  bool has_news = false;
  for_each([&](Slot& slot, Request& request) {
    if (!request.is_active || request.is_done || request.kind == Kind::other) return;
    if (request.kind == Kind::send) return;  // complete at the receiver
    if (!poll(slot, request)) return;
    has_news = true;
    if (request.is_orphan) drop(slot, request);
  });
  return has_news;
}

void renew_requests() {
  ++renewals;
  uint32_t count = 0;
  for_each([&](Slot&, Request&) { ++count; });
  auto** all = static_cast<Slot**>(malloc((count + 1) * sizeof(Slot*)));
  if (all == nullptr) abort();
  count = 0;
  for_each([&](Slot& slot, Request&) { all[count++] = &slot; });
  // As the program began them: that is the order in which they get messages.
  qsort(all, count, sizeof *all, by_sequence);
  for (uint32_t i = 0; i < count; ++i) renew(*all[i], by_slot.at(all[i]));
  free(all);
}

uint64_t lives() { return renewals; }

}  // namespace backstay::mpi
