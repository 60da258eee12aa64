// vfork on processors for which nobody has written the jump into libc's vfork: a fork, which is
// slower and does all that a program may expect of vfork.
#include <unistd.h>

#include "capture/files/export.h"
#include "capture/files/vfork.h"

namespace backstay::files {

EXPORT(pid_t, vfork, ()) { return ::fork(); }

}  // namespace backstay::files
