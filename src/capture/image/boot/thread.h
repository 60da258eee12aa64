// Starting a thread without a library.
#pragma once

#include "capture/image/boot/system.h"

namespace backstay::image {

inline constexpr uint64_t clone_memory = 0x100;
inline constexpr uint64_t clone_place = 0x200;  // working directory and umask
inline constexpr uint64_t clone_descriptors = 0x400;
inline constexpr uint64_t clone_handlers = 0x800;
inline constexpr uint64_t clone_thread = 0x10000;
inline constexpr uint64_t clone_semaphores = 0x40000;
inline constexpr uint64_t clone_clear_tid = 0x200000;

struct NewThread {
  uint64_t flags = 0;
  void* stack = nullptr;  // its end, aligned to 16
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;
  uint64_t clear_tid = 0;  // with clone_clear_tid
};

// The new thread's id, or -errno. It inherits the caller's mask.
long start_thread(const NewThread& thread);

}  // namespace backstay::image
