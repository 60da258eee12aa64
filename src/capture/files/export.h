// How a function of libc is interposed.
//
// EXPORT(int, close, (int fd)) { ... NEXT(close)(fd) ... } defines the symbol `close` of this
// library; in C++ it is called backstay_close, so that no declaration of a system header can differ
// from it. NEXT(close) is the function that the program would have called without us: libc's, or
// that of the library that the user preloads behind ours.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cerrno>

namespace backstay::files {

// The next symbol of this name, found once. A libc without it: a function that fails with ENOSYS.
void* next_symbol(std::atomic<void*>& found, const char* name);

// As openat, natively.
int next_openat(int folder, const char* path, int flags, mode_t mode);
// As clone of libc.
int next_clone(int (*body)(void*), void* stack, int flags, void* argument);

// -1 and errno, or 0.
inline int answer(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace backstay::files

#define EXPORT(result, name, parameters)                  \
  [[maybe_unused]] static std::atomic<void*> slot_##name; \
  extern "C" __attribute__((visibility("default")))       \
  result backstay_##name parameters __asm__(#name);       \
  result backstay_##name parameters
#define NEXT(name) \
  (reinterpret_cast<decltype(&backstay_##name)>(::backstay::files::next_symbol(slot_##name, #name)))
