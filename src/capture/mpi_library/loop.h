// A blocking call as a loop of tests: with the FS base of the lower half while nothing is asked
// for.
#pragma once

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

// A thread sleeps for a moment after so many tests in vain: a part of a millisecond.
inline constexpr int tests_max = 2000;

template <typename Body>
int in_lower(Body& body) {
  int (*run)(Body*) = [](Body* all) { return (*all)(); };
  return call_inside<int>(reinterpret_cast<void*>(run), &body);
}

// Runs `test`, which sets `is_complete` or fails, until it does, or until something is asked for;
// only once where other threads may want the lock.
template <typename Test>
int test_in_lower(const int& is_complete, Test test) {
  auto body = [&] {
    for (uint32_t turn = 1;; ++turn) {
      const int result = test();
      if (result != 0 || is_complete != 0 || is_asked() || is_shared) return result;
      if (turn % tests_max == 0) rest();
    }
  };
  return in_lower(body);
}

// One turn of a slow loop.
inline void turn(const Awaited& awaited) {
  static uint32_t turns = 0;
  if (is_asked()) return wait_turn(awaited);
  const Unlocked others;
  if (++turns % tests_max == 0) rest();
}

// Whom this request waits for, into the list.
inline void add_awaited(RequestHandle handle, Awaited& to) {
  const Request* request = request_of(handle);
  if (request == nullptr || request->kind != Request::Kind::receive || request->is_done) return;
  const Communicator* in = request->communicator;
  if (in == nullptr) return;
  if (request->peer == abi::any_source) return to.add_any();
  if (request->peer >= 0 && request->peer < in->size) to.add(in->world_rank(request->peer));
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
