// The machine's own files, and a Ring of plain threads for machines that refuse io_uring.
#pragma once

#include <memory>

#include "io/file.h"
#include "io/ring.h"

namespace backstay::io {

struct PosixOptions {
  bool direct = true;  // false: the *_direct ways of opening never use O_DIRECT
};

// Files have mode 0600, directories 0700, descriptors are closed in children (O_CLOEXEC). O_DIRECT
// is dropped where the file system refuses it or wants more than 4096-byte alignment;
// File::direct() says which.
std::unique_ptr<FileSystem> make_posix_filesystem(PosixOptions options = {});

// The process-wide one with default options; never destroyed.
FileSystem& posix_filesystem();

// `threads` threads run the blocking calls of any File. The destructor finishes what is in flight
// and joins them; a ring that is never destroyed does not keep the process from exiting.
// Errors: io (no thread can be started).
Result<std::unique_ptr<Ring>> make_thread_ring(unsigned depth, unsigned threads);

}  // namespace backstay::io
