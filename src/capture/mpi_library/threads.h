// Several threads of the program in MPI at once (docs/protocol/lower-half.md, "Several threads").
// One of them at a time has the lock of the library. A thread that may have to wait in the real
// MPI, or waits in a loop, gives the lock away meanwhile. Where the program was not given
// MPI_THREAD_MULTIPLE, nothing is locked.
#pragma once

#include <stdint.h>

#include "capture/lower/channel.h"

namespace backstay::mpi {

// The program was given MPI_THREAD_MULTIPLE. Memory of the program, as all of this is.
[[gnu::visibility("hidden")]] extern bool is_shared;
// With several threads: the row of the channel that belongs to the thread with the lock.
[[gnu::visibility("hidden")]] extern uint32_t own_row;

// In the call that has got the level: from here on there is a lock, and this thread has it.
void begin_sharing();
// The way into a call and out of it: they take and free the lock and a row. A call inside of a
// callback has the row of the call outside.
[[gnu::cold]] lower::Caller& join();
[[gnu::cold]] void part();

// The row of the calling thread, on the way in and while it is in a call.
inline lower::Caller& caller_in() {
  return __builtin_expect(is_shared, 0) ? join() : lower::channel().caller[0];
}
inline lower::Caller& own_caller() {
  return lower::channel().caller[__builtin_expect(is_shared, 0) ? own_row : 0];
}
inline void caller_out() {
  if (__builtin_expect(is_shared, 0)) part();
}

// Lets others have the processor, and the lock.
void give_way();
// Around a sleep or a call that may wait: others have the lock. It does nothing in a callback under
// the lock.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  bool is_unlocked_;
  uint32_t row_;
};
// In here nobody gives the lock away, and all others wait.
class Undivided {
 public:
  Undivided();
  ~Undivided();
  Undivided(const Undivided&) = delete;
  Undivided& operator=(const Undivided&) = delete;
};
// Takes the lock in a callback that runs without it.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  bool is_taken_ = false;
};

// Of a thread that is in a callback without the lock: the FS base of the call outside; else 0. A
// function that needs nothing of the library runs with it and without our lock: the real MPI may
// hold a lock of its own around the callback, and the thread with our lock may wait for that one.
uint64_t outer_fs();
inline uint64_t callback_fs() { return __builtin_expect(is_shared, 0) ? outer_fs() : 0; }
// Whether a call may give the lock away: not in a callback under the lock.
[[gnu::cold]] bool is_outermost();
inline bool may_unlock() { return __builtin_expect(is_shared, 0) && is_outermost(); }
// The FS base for a call during which others have the lock: that of the lower half's thread for
// this row, which the first such call starts. 0: it could not be started. Precondition: the caller
// has the lock.
uint64_t borrow_fs();

}  // namespace backstay::mpi
