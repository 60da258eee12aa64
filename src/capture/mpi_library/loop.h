// A blocking call as a loop of tests: with the FS base of the lower half while nothing is asked
// for.
#pragma once

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

// A thread sleeps for a moment after so many tests in vain: a part of a millisecond.
inline constexpr int tests_max = 2000;

// Runs `test`, which sets `is_complete` or fails, until it does, or until something is asked for;
// only once where that is all, or other threads may want the lock.
template <typename Test>
int test_in_lower(const int& is_complete, Test test, bool once = false) {
  auto body = [&] {
    for (uint32_t turn = 1;; ++turn) {
      const int result = test();
      if (once || result != 0 || is_complete != 0 || is_asked() || is_shared) return result;
      if (turn % tests_max == 0) rest();
    }
  };
  int (*run)(decltype(body)*) = [](decltype(body)* all) { return (*all)(); };
  return call_inside<int>(reinterpret_cast<void*>(run), &body);
}

// One turn of a slow loop.
inline void turn(const Awaited& awaited) {
  static uint32_t turns = 0;
  if (is_asked()) return wait_turn(awaited);
  const Unlocked others;
  if (++turns % tests_max == 0) rest();
}

// Whom a receive or a request waits for, into the list.
inline void add_awaited(const Communicator* in, int source, Awaited& to) {
  if (in != nullptr && source == abi::any_source) to.add_any();
  if (has_member(in, source)) to.add(in->world_rank(source));
}
inline void add_awaited(RequestHandle handle, Awaited& to) {
  const Request* request = request_of(handle);
  if (request == nullptr || request->kind != Request::Kind::receive || request->is_done) return;
  add_awaited(request->communicator, request->peer, to);
}

// The slow way: test and take in by turns.
inline int wait_slowly(RequestHandle& handle, void* status) {
  while (!poll(handle)) {
    Awaited awaited;
    add_awaited(handle, awaited);
    turn(awaited);
  }
  stop_waiting();
  return hand_over(handle, status);
}

}  // namespace backstay::mpi
