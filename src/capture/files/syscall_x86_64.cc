// The kernel's call by its number, as libuv closes files (node, cmake): close and the sync family
// are ours, all others go on into libc's function, which finds registers and stack as the program
// left them (a clone returns twice).
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/files/export.h"

namespace backstay::files {

extern "C" __attribute__((visibility("hidden"))) void* backstay_next_syscall() {
  static std::atomic<void*> found;
  return next_symbol(found, "syscall");
}

// By the names that this library exports.
extern "C" __attribute__((visibility("hidden"))) long backstay_known_syscall(long number, int fd) {
  switch (number) {
    case SYS_close: return ::close(fd);
    case SYS_fsync: return ::fsync(fd);
    default: return ::fdatasync(fd);
  }
}

static_assert(SYS_close == 3 && SYS_fsync == 74 && SYS_fdatasync == 75);

}  // namespace backstay::files

__asm__(R"(
  .text
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  cmpq $3, %rdi
  je 1f
  cmpq $74, %rdi
  je 1f
  cmpq $75, %rdi
  je 1f
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call backstay_next_syscall
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
1:
  jmp backstay_known_syscall
  .cfi_endproc
  .size syscall, . - syscall
)");
