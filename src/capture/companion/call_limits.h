// Limits that a program sets on its own system calls (seccomp). What saves it is under them, too: a
// thread in its process, and a signal's handler in each of its threads. A limit that ends a process
// for a call that nobody expects would end the program for being saved; and no image has it.
#pragma once

#include <sys/types.h>

namespace backstay::image {

// A thread of that process has set some itself. Those that this process has, too, are inherited.
bool limits_its_calls(pid_t process);

}  // namespace backstay::image
