// What the kernel has done for a process in its life, as it counts that itself.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace backstay::image {

struct KernelWork {
  std::uint64_t faults = 0;  // of pages, without those that waited for a disk
  double seconds = 0;        // in the kernel, all threads; to some 10 ms
};
// Zeros where it has ended.
KernelWork kernel_work_of(pid_t process);

// What the program lost by a snapshot, at most: the time in the kernel since it was made, of which
// no more than a fault takes counts for each fault.
double slow_down_s(const KernelWork& before, const KernelWork& after);

}  // namespace backstay::image
