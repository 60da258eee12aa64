// What /proc/self/exe is to the program. The kernel leads it to the boot program. So the program's
// libc asks here (doors.h) when it reads the link or executes it, and finds the program's own file:
// by it programs find what is installed beside them, and start themselves again (Node.js, SBCL,
// Julia). A program that opens the link gets the boot program. Any thread.
#pragma once

#include "capture/image/boot/call_sites.h"

namespace backstay::image::exe_link {

// readlink and readlinkat, as the kernel answers them but for the own link. That one has the name
// that the file had at the start, also if the file was renamed or removed since.
long read(const Call& call);
// execve and execveat: the program's own file in place of the link, while the file is where it was.
// A path that the call has must be memory.
Call with_own_file(const Call& call);

}  // namespace backstay::image::exe_link
