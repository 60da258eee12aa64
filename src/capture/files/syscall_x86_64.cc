// The kernel's call by its number, as libuv closes files (node, cmake). Ours are close, the sync
// family, and close_range, which would close the library's own descriptors too. All others go on
// into libc's function, which finds registers and stack as the program left them (a clone returns
// twice). Before those that look at a path, or change it, pending files come home.
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/pool.h"
#include "capture/files/ring.h"

namespace backstay::files {
namespace {

bool takes_path(long number) {
  switch (number) {
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
    case SYS_stat:
    case SYS_lstat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_link:
    case SYS_linkat:
    case SYS_chmod:
    case SYS_fchmodat:
    case SYS_chown:
    case SYS_lchown:
    case SYS_fchownat:
    case SYS_utimensat:
    case SYS_truncate:
    case SYS_execve:
    case SYS_execveat: return true;
    default: return false;
  }
}

long refused() { return -1; }  // errno is set

}  // namespace

// What the call goes on into. All arguments of the program stand in their registers: `opcode` is
// one of io_uring_register alone.
extern "C" __attribute__((visibility("hidden"))) void* backstay_next_syscall(long number, long,
                                                                             unsigned opcode) {
  if (is_anything_pending() && takes_path(number)) settle_all();
  if (number == SYS_io_uring_register) {
    const int error = make_registered_real(opcode);
    if (answer(error) != 0) return reinterpret_cast<void*>(&refused);
  }
  static std::atomic<void*> found;
  return next_symbol(found, "syscall");
}

// By the names that this library exports.
extern "C" __attribute__((visibility("hidden"))) long backstay_known_syscall(long number, int fd,
                                                                             unsigned last,
                                                                             int flags) {
  switch (number) {
    case SYS_close: stay_out_of_pool(); return ::close(fd);
    case SYS_close_range:
      stay_out_of_pool();
      return ::close_range(static_cast<unsigned>(fd), last, flags);
    case SYS_fsync: return ::fsync(fd);
    default: return ::fdatasync(fd);
  }
}

static_assert(SYS_close == 3 && SYS_fsync == 74 && SYS_fdatasync == 75 && SYS_close_range == 436);

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
  cmpq $436, %rdi
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
