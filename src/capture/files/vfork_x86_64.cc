// vfork on x86-64: a call of what comes before, and a jump into libc's vfork, which finds the stack
// as the program left it.
#include "capture/files/export.h"
#include "capture/files/vfork.h"

namespace backstay::files {

extern "C" __attribute__((visibility("hidden"))) void* backstay_before_vfork() {
  static std::atomic<void*> found;
  before_vfork();
  return next_symbol(found, "vfork");
}

}  // namespace backstay::files

__asm__(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  .cfi_startproc
  endbr64
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call backstay_before_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size vfork, . - vfork
)");
