// A program that replaces itself by another one (exec): the new one starts under the boot program
// too. The kernel replaces this process by the boot program, which starts the new program, so that
// threads, descriptors, signals, timers and memory are those of any exec.
#pragma once

#include "capture/image/boot/call_sites.h"
#include "capture/image/boot/doors.h"
#include "capture/image/boot/options.h"

namespace backstay::image {

// What a boot program that replaces this one is told. Before the program runs.
void remember_options(const Options& options);

// Returns -errno, as the kernel does, where the program is not replaced. Where the boot program
// cannot start the new one (linked statically, set-user-id), or this is a child, the kernel does
// what was asked. Any thread of the program, on its own stack.
long replace_program(const Call& call);

}  // namespace backstay::image
