// System calls without a library: the boot program shares its process with a program whose libc
// owns errno, thread-local storage and the heap, so it may use none of them. Each returns what the
// kernel does: a negative number is -errno. Any thread.
#pragma once

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <stddef.h>
#include <stdint.h>

namespace backstay::image {

inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

inline long address_of(const void* pointer) { return reinterpret_cast<long>(pointer); }

inline long sys_open(const char* path, int flags, int mode = 0) {
  return system_call(__NR_openat, AT_FDCWD, address_of(path), flags, mode);
}
inline long sys_close(long fd) { return system_call(__NR_close, fd); }
inline long sys_read(long fd, void* to, size_t bytes) {
  return system_call(__NR_read, fd, address_of(to), static_cast<long>(bytes));
}
inline long sys_pread(long fd, void* to, size_t bytes, uint64_t at) {
  return system_call(__NR_pread64, fd, address_of(to), static_cast<long>(bytes),
                     static_cast<long>(at));
}
inline long sys_write(long fd, const void* from, size_t bytes) {
  return system_call(__NR_write, fd, address_of(from), static_cast<long>(bytes));
}
inline long sys_map(uint64_t at, uint64_t bytes, int protection, int flags, long fd = -1,
                    uint64_t offset = 0) {
  return system_call(__NR_mmap, static_cast<long>(at), static_cast<long>(bytes), protection, flags,
                     fd, static_cast<long>(offset));
}
inline long sys_unmap(uint64_t at, uint64_t bytes) {
  return system_call(__NR_munmap, static_cast<long>(at), static_cast<long>(bytes));
}
inline long sys_protect(uint64_t at, uint64_t bytes, int protection) {
  return system_call(__NR_mprotect, static_cast<long>(at), static_cast<long>(bytes), protection);
}
[[noreturn]] inline void sys_exit(int code) {
  for (;;) system_call(__NR_exit_group, code);
}
inline long sys_thread_id() { return system_call(__NR_gettid); }

constexpr long futex_wait_private = 128;  // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
constexpr long futex_wake_private = 129;
inline void wait_while(const volatile uint32_t* word, uint32_t value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
    system_call(__NR_futex, reinterpret_cast<long>(word), futex_wait_private, value);
  }
}
inline void wake_all(const volatile uint32_t* word) {
  system_call(__NR_futex, reinterpret_cast<long>(word), futex_wake_private, 0x7fffffff);
}

// The kernel's own struct for rt_sigaction, which is not libc's.
struct KernelAction {
  uint64_t handler = 0;
  uint64_t flags = 0;
  uint64_t restorer = 0;
  uint64_t mask = 0;
};
inline long sys_action(int signal, const KernelAction* to, KernelAction* from = nullptr) {
  return system_call(__NR_rt_sigaction, signal, address_of(to), address_of(from), 8);
}
inline constexpr int block_set = 2;  // SIG_SETMASK
inline uint64_t set_mask(uint64_t mask) {
  uint64_t old = 0;
  system_call(__NR_rt_sigprocmask, block_set, address_of(&mask), address_of(&old), 8);
  return old;
}

inline uint64_t get_base(int code) {  // arch_prctl
  uint64_t base = 0;
  system_call(__NR_arch_prctl, code, address_of(&base));
  return base;
}
inline constexpr int get_fs = 0x1003;
inline constexpr int get_gs = 0x1004;
inline constexpr int set_fs = 0x1002;
inline constexpr int set_gs = 0x1001;

inline uint64_t now_ns(int clock) {
  struct {
    uint64_t seconds, nanoseconds;
  } time{};
  system_call(__NR_clock_gettime, clock, address_of(&time));
  return time.seconds * 1'000'000'000ULL + time.nanoseconds;
}

}  // namespace backstay::image
