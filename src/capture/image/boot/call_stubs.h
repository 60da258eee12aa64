// System calls of a mapped library that are changed to jumps to a stub of their own, near the code.
// Unlike the calls of call_sites.h a stub touches neither the stack below the caller's nor what
// lies behind the system call, so it fits into any function that makes it with its number in sight.
#pragma once

#include "capture/image/boot/call_sites.h"

namespace backstay::image {

struct Stubs {
  uint64_t start, end;  // readable and executable; at most 2 GiB away from the code
  uint64_t next;        // the first free byte
};

// Changes the places of [start, end) that are one of these:
//   mov $number, %eax; syscall
//   mov $number, %eax; up to 10 bytes; syscall; cmp $errors, %rax
//   mov 8(%rsp), %r9; syscall; cmp $errors, %rax     libc's syscall(), with any number
//   mov %r11, 8(%rsp); syscall                       glibc 2.41's own for calls that a thread can
//   be mov 0x10(%rsp), %rax; syscall                    cancelled in, with any number
// `wants(number)` says whether a number is to be changed, and is told of each one that was.
// `function` finds the registers of the system call with its number in eax, and changes those that
// the kernel may change. False: no room is left for a stub, or the code is too far away.
bool change_to_stubs(uint64_t start, uint64_t end, bool (*wants)(uint32_t number),
                     void (*function)(), Stubs& stubs);
inline constexpr uint32_t any_number = 0xffffffff;

}  // namespace backstay::image

// A function that stubs call, with the number in eax. It hands the registers of the system call to
// `function(const Call*)`.
#define BACKSTAY_STUB_FUNCTION(name, function)                                         \
  extern "C" [[gnu::naked, gnu::used]] void name() {                                   \
    __asm__ volatile(                                                                  \
        "push %r9\n\tpush %r8\n\tpush %r10\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\t" \
        "push %rax\n\tmov %rsp, %rdi\n\t"                                              \
        "push %rbp\n\tmov %rsp, %rbp\n\tand $-16, %rsp\n\t"                            \
        "call " #function                                                              \
        "\n\tmov %rbp, %rsp\n\tpop %rbp\n\tadd $8, %rsp\n\t"                           \
        "pop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %r10\n\tpop %r8\n\tpop %r9\n\tret");  \
  }
