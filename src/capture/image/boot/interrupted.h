// System calls that a signal ends with EINTR although its handler asked for a restart (signal(7)):
// poll, select, nanosleep, futex with a timeout and others. A cut must not be seen by the program,
// so these are entered again with their own arguments.
#pragma once

#include "capture/image/boot/window.h"

namespace backstay::image {

struct Context;

// The system call in which a thread was when it was asked to stop (/proc/self/task/TID/syscall).
struct Call {
  long number = -1;
  uint64_t stack = 0, instruction = 0;
};
Call call_of(uint64_t tid);

// Changes the frame of this thread so that the call is entered again, if it was ended by our
// signal. A timeout of a call of glibc goes on: it ends at most as much later as the thread had
// waited at the first cut. The control thread calls it.
void repeat_call(Context& context, uint64_t tid, const Call& call);

}  // namespace backstay::image
