// Whether anybody else has a file open.
#pragma once

namespace backstay::files {

// Whether another open file description leads to the file, in this process or another one of this
// machine. Descriptors made from `fd` by dup do not count. False where the file system cannot tell.
bool open_elsewhere(int fd);

}  // namespace backstay::files
