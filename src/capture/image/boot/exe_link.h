// What /proc/self/exe is to the program. The kernel leads it to the boot program. So the program's
// libc asks here (doors.h), and gets the path of the program's own file: by it programs find what
// is installed beside them, and start themselves again (Node.js, SBCL, Julia). Only reading the
// link and executing it: a program that opens it gets the boot program. Any thread.
#pragma once

#include "capture/image/boot/call_sites.h"

namespace backstay::image::exe_link {

// readlink and readlinkat, answered as the kernel would if there were no boot program.
long read(const Call& call);
// The program's own file, where `path` is this process's link; else `path` itself, which must be
// readable.
const char* instead_of(const char* path);

}  // namespace backstay::image::exe_link
