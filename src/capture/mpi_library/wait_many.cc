// Waiting for several requests. Where nothing is asked for and the real MPI knows of all of them,
// it is asked for all at once; else each is tested by itself.
#include <stdlib.h>

#include "capture/mpi_library/loop.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

// Statuses that the real MPI writes: the program's; or ours, where it ignores them and a receive
// from any source has to be counted.
class Statuses {
 public:
  Statuses(void* of, const RequestHandle* requests, int count)
      : given_(of), at_(static_cast<abi::Status*>(of)) {
    if (!abi::is_ignored(of)) return;
    is_ignored_ = true;
    for (int i = 0; i < count && own_ == nullptr; ++i) {
      const Request* request = request_of(requests[i]);
      if (request == nullptr || request->kind != Request::Kind::receive) continue;
      if (request->peer != abi::any_source) continue;
      own_ = static_cast<abi::Status*>(calloc(static_cast<size_t>(count), sizeof(abi::Status)));
      if (own_ == nullptr) abort();
    }
  }
  ~Statuses() { free(own_); }
  Statuses(const Statuses&) = delete;
  Statuses& operator=(const Statuses&) = delete;

  void* place() { return own_ != nullptr ? own_ : given_; }
  // Of the request that has completed; `at`: where its status is.
  int source(const Request* request, int at) const {
    if (request != nullptr && request->peer != abi::any_source) return request->peer;
    if (own_ != nullptr) return own_[at].source;
    return is_ignored_ ? -1 : at_[at].source;
  }

 private:
  void* given_;
  abi::Status* at_;
  abi::Status* own_ = nullptr;
  bool is_ignored_ = false;
};

struct Call {
  int count;
  RequestHandle* requests;
  void* statuses;
  void* status(int i) const {
    return abi::is_ignored(statuses) ? statuses : static_cast<abi::Status*>(statuses) + i;
  }
};

bool is_plain() { return held_back_requests() == 0; }

void count_completed(const Call& call, const Statuses& statuses, int i, int at) {
  complete(call.requests[i], statuses.source(request_of(call.requests[i]), at));
}

Awaited awaited_of(const Call& call) {
  Awaited awaited;
  for (int i = 0; i < call.count; ++i) add_awaited(call.requests[i], awaited);
  return awaited;
}

void give_empty(void* status) {
  if (!abi::is_ignored(status)) set_empty(*static_cast<abi::Status*>(status));
}

// --- all
// -------------------------------------------------------------------------------------------

bool all_done(const Call& call) {
  bool all = true;
  for (int i = 0; i < call.count; ++i) {
    if (!is_idle(call.requests[i]) && !poll(call.requests[i])) all = false;
  }
  return all;
}

int hand_all(const Call& call) {
  bool has_errors = false;
  for (int i = 0; i < call.count; ++i) {
    const Request* request = request_of(call.requests[i]);
    if (request != nullptr && request->is_done && request->error != 0) has_errors = true;
  }
  for (int i = 0; i < call.count; ++i) {
    int error = 0;
    if (is_idle(call.requests[i])) {
      give_empty(call.status(i));
    } else {
      error = hand_over(call.requests[i], call.status(i));
    }
    if (has_errors && !abi::is_ignored(call.statuses)) {
      static_cast<abi::Status*>(call.status(i))->error = error;
    }
  }
  return has_errors ? abi::error_in_status : 0;
}

// The real MPI's answer for all; -1: they are not complete. `once`: looks, and does not wait.
int all_at_once(const Call& call, bool once) {
  InOutArray<Class::request> reals(call.requests, call.count);
  Statuses statuses(call.statuses, call.requests, call.count);
  int is_complete = 0;
  const auto test = [&] {
    return native(index_MPI_Testall, call.count, reals.place(), &is_complete, statuses.place());
  };
  const int result = test_in_lower(is_complete, test, once);
  if (result == 0 && is_complete == 0) return -1;
  for (int i = 0; i < call.count; ++i) {
    if (result == 0 || reals.is_null_at(i)) count_completed(call, statuses, i, i);
  }
  reals.put();
  return result;
}

// --- any
// -------------------------------------------------------------------------------------------

// The first that is done; -1: none; `undefined`: there is none to wait for.
int find_done(const Call& call) {
  bool has_open = false;
  for (int i = 0; i < call.count; ++i) {
    if (is_idle(call.requests[i])) continue;
    if (poll(call.requests[i])) return i;
    has_open = true;
  }
  return has_open ? -1 : abi::undefined;
}

int any_at_once(const Call& call, int* index, int* is_complete, bool once) {
  InOutArray<Class::request> reals(call.requests, call.count);
  abi::Status own{};
  void* status = abi::is_ignored(call.statuses) ? &own : call.statuses;
  const auto test = [&] {
    return native(index_MPI_Testany, call.count, reals.place(), index, is_complete, status);
  };
  const int result = test_in_lower(*is_complete, test, once);
  const bool has_one = *index >= 0 && *index < call.count && (*is_complete != 0 || result != 0);
  if (has_one) complete(call.requests[*index], static_cast<abi::Status*>(status)->source);
  reals.put();
  return result;
}

// --- some
// ------------------------------------------------------------------------------------------

// As MPI_Testsome does it.
int some_done(const Call& call, int* count, int* indices) {
  *count = 0;
  bool has_open = false;
  bool has_errors = false;
  for (int i = 0; i < call.count; ++i) {
    if (is_idle(call.requests[i])) continue;
    has_open = true;
    if (!poll(call.requests[i])) continue;
    const int at = (*count)++;
    indices[at] = i;
    const int error = hand_over(call.requests[i], call.status(at));
    if (error != 0) has_errors = true;
    if (!abi::is_ignored(call.statuses)) static_cast<abi::Status*>(call.status(at))->error = error;
  }
  if (!has_open) *count = abi::undefined;
  return has_errors ? abi::error_in_status : 0;
}

int some_at_once(const Call& call, int* count, int* indices, bool once) {
  InOutArray<Class::request> reals(call.requests, call.count);
  Statuses statuses(call.statuses, call.requests, call.count);
  *count = 0;
  const auto test = [&] {
    return native(index_MPI_Testsome, call.count, reals.place(), count, indices, statuses.place());
  };
  const int result = test_in_lower(*count, test, once);
  for (int at = 0; at < *count; ++at) count_completed(call, statuses, indices[at], at);
  reals.put();
  return result;
}

Call call_of(int count, void* requests, void* statuses) {
  return {count, static_cast<RequestHandle*>(requests), statuses};
}

}  // namespace

extern "C" {

int PMPI_Waitall(int count, void* requests, void* statuses) {
  const InCall in_call;
  const Call call = call_of(count, requests, statuses);
  if (is_plain()) {
    const int result = all_at_once(call, false);
    if (result >= 0) return result;
  }
  while (!all_done(call)) turn(awaited_of(call));
  stop_waiting();
  return hand_all(call);
}
BACKSTAY_MPI_NAME(MPI_Waitall)

int PMPI_Testall(int count, void* requests, int* flag, void* statuses) {
  const InCall in_call;
  const Call call = call_of(count, requests, statuses);
  *flag = 1;
  if (is_plain()) {
    const int result = all_at_once(call, true);
    if (result >= 0) return result;
  } else if (all_done(call)) {
    return hand_all(call);
  }
  *flag = 0;
  if (is_asked()) found_nothing(awaited_of(call));
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Testall)

int PMPI_Waitany(int count, void* requests, int* index, void* status) {
  const InCall in_call;
  const Call call = call_of(count, requests, status);
  int is_complete = 0;
  if (is_plain()) {
    const int result = any_at_once(call, index, &is_complete, false);
    if (is_complete != 0 || result != 0) return result;
  }
  while ((*index = find_done(call)) == -1) turn(awaited_of(call));
  stop_waiting();
  if (*index != abi::undefined) return hand_over(call.requests[*index], status);
  give_empty(status);
  return 0;
}
BACKSTAY_MPI_NAME(MPI_Waitany)

int PMPI_Testany(int count, void* requests, int* index, int* flag, void* status) {
  const InCall in_call;
  const Call call = call_of(count, requests, status);
  int result = 0;
  if (is_plain()) {
    result = any_at_once(call, index, flag, true);
  } else {
    *index = find_done(call);
    *flag = *index != -1 ? 1 : 0;
    if (*index >= 0) return hand_over(call.requests[*index], status);
    if (*index == abi::undefined) give_empty(status);
    if (*flag == 0) *index = abi::undefined;
  }
  if (is_asked() && result == 0 && *flag == 0) found_nothing(awaited_of(call));
  return result;
}
BACKSTAY_MPI_NAME(MPI_Testany)

int PMPI_Waitsome(int count, void* requests, int* out_count, int* indices, void* statuses) {
  const InCall in_call;
  const Call call = call_of(count, requests, statuses);
  if (is_plain()) {
    const int result = some_at_once(call, out_count, indices, false);
    if (*out_count != 0 || result != 0) return result;
  }
  int result = 0;
  while ((result = some_done(call, out_count, indices)) == 0 && *out_count == 0) {
    turn(awaited_of(call));
  }
  stop_waiting();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Waitsome)

int PMPI_Testsome(int count, void* requests, int* out_count, int* indices, void* statuses) {
  const InCall in_call;
  const Call call = call_of(count, requests, statuses);
  const int result = is_plain() ? some_at_once(call, out_count, indices, true)
                                : some_done(call, out_count, indices);
  if (is_asked() && result == 0 && *out_count == 0) found_nothing(awaited_of(call));
  return result;
}
BACKSTAY_MPI_NAME(MPI_Testsome)

}  // extern "C"

}  // namespace backstay::mpi
