// Descriptors of our own in the program's table: they have high numbers, are closed at exec, and
// the program cannot close them.
#pragma once

#include "capture/files/table.h"

namespace backstay::files {

// Another descriptor for what `fd` leads to; -errno.
int keep_descriptor(Table& table, int fd);
// The same, and `fd` is closed in any case. A negative `fd` is returned as it is.
int move_descriptor(Table& table, int fd);
void close_descriptor(Table& table, int fd);
// As dup3. The kernel may refuse for a moment (EBUSY, EINTR): it is asked again.
int put_at_number(int from, int to, int flags);
// A new open file description of the same file; -errno.
int reopen(int fd, int flags);

}  // namespace backstay::files
