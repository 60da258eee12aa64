// Tells a process from a child that it forked: without a system call, as it is asked for each write
// of a program.
#pragma once

#include <sys/types.h>

namespace backstay::client {

// Belongs to the process that made it. Any thread.
class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  // False in a child of fork(). A child that shares the memory until it executes (vfork) is not
  // told apart: what it writes there is its parent's.
  bool is_own() const;

 private:
  // One page that the kernel clears in a forked child; null where it cannot.
  volatile char* page_ = nullptr;
  pid_t pid_;
};

}  // namespace backstay::client
