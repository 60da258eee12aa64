// The one lock of this library. While a thread holds it, all signals are blocked in that thread: a
// handler that closes or opens a file cannot wait for the thread that it interrupted.
#pragma once

#include <cstdint>

namespace backstay::files {

class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::uint64_t signals_ = 0;  // those that were blocked before
};

// The lock over a fork: the parent takes it before, and each side lets it go.
void lock_before_fork();
void unlock_after_fork();
// In the child, whose other threads are gone.
void renew_lock_in_child();

}  // namespace backstay::files
