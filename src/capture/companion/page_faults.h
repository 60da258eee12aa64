// What the kernel counts of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace backstay::image {

// Of its life, without those that waited for a disk; 0: it has ended.
std::uint64_t page_faults_of(pid_t process);

}  // namespace backstay::image
