// The program's handlers of signals, where it has a lower half: a signal may come while a thread of
// the program is in a call of MPI, with the lower half's FS base (docs/protocol/lower-half.md,
// "Signals"). The kernel is given a function of ours in their place, which goes on to the handler.
#pragma once

#include "capture/image/boot/call_sites.h"

namespace backstay::image::handlers {

// Whether handlers are to be wrapped in this process. Once, before the program runs.
void begin();
// rt_sigaction as the program's libc makes it, through a door. Any thread of the program, also in a
// handler, and any child of it.
long change(const Call& call);
// What the program knows of an action that the kernel has told.
KernelAction seen_by_program(int signal, const KernelAction& action);
// Sets an action of the program's, in a process that an image was brought back into.
void install(int signal, const KernelAction& action);

}  // namespace backstay::image::handlers
