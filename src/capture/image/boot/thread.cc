#include "capture/image/boot/thread.h"

namespace backstay::image {

// The child finds nothing but its stack: what it is to call lies there.
long start_thread(const NewThread& thread) {
  auto* top = static_cast<uint64_t*>(thread.stack);
  *--top = reinterpret_cast<uint64_t>(thread.argument);
  *--top = reinterpret_cast<uint64_t>(thread.entry);
  register uint64_t clear_tid __asm__("r10") = thread.clear_tid;
  register uint64_t tls __asm__("r8") = 0;
  long result;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "ud2\n"
      "1:"
      : "=a"(result)
      : "a"(__NR_clone), "D"(thread.flags), "S"(top), "d"(0), "r"(clear_tid), "r"(tls)
      : "rcx", "r11", "memory");
  return result;
}

}  // namespace backstay::image
