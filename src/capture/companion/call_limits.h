// Limits that a program sets on its own system calls (seccomp). They hold for what saves it, too: a
// thread in its process, and a signal handler in each of its threads. A limit may end the process
// for a call that it does not allow, and so would end the program for being saved. An image does
// not hold limits.
#pragma once

#include <sys/types.h>

namespace backstay::image {

// Whether a thread of that process has limits that this process does not have: both have inherited
// the others. False for a process that has ended.
bool limits_its_calls(pid_t process);

}  // namespace backstay::image
