// How libfuse's messages pass to and from the kernel: as libfuse would send them, but for one flag
// in the answer to the first message, which the libfuse of Debian 12 does not know.
//
// HANDLE_KILLPRIV_V2: the file system takes set-id bits and capabilities away by itself where a
// file is written. Without it the kernel asks before each write of a program for an extended
// attribute, which costs a write of 4 KiB twenty times what it costs else. The target's own file
// system does it for files at their places; files with set-id bits are never in memory.
#pragma once

#include <fuse_lowlevel.h>

namespace backstay::mount {

// For a session that is mounted. An error number.
int use_kernel_link(fuse_session* session);

}  // namespace backstay::mount
