// System calls of a mapped library that are changed in its memory, so that they enter the boot
// program: calls of the program's libc (doors.h), calls that map memory in the lower half
// (steer.h).
#pragma once

#include "capture/image/boot/system.h"

namespace backstay::image {

// A system call's number and arguments, as the kernel would get them.
struct Call {
  uint64_t number;
  uint64_t arguments[6];
};

inline long by_kernel(const Call& call) {
  const uint64_t* a = call.arguments;
  return system_call(static_cast<long>(call.number), static_cast<long>(a[0]),
                     static_cast<long>(a[1]), static_cast<long>(a[2]), static_cast<long>(a[3]),
                     static_cast<long>(a[4]), static_cast<long>(a[5]));
}

// `mov $number, %eax; syscall; cmp $errors, %rax` as libraries have it. It is as long as
// `movabs $function, %rax; call *%rax; nop`.
struct CallSite {
  static constexpr uint64_t bytes = 13;
  uint64_t function;  // or a door: what is called in its place
  uint32_t number;
  int32_t errors;  // -4095 or -4096
};

// `mov $number, %eax; syscall`: becomes `mov $0, %rax`.
inline constexpr uint64_t short_site_bytes = 7;

// Changes the places of [start, end) that are one of these; returns how many. The range must be
// mapped to be read and executed, and no thread may be in it.
uint64_t change_sites(uint64_t start, uint64_t end, const CallSite* sites, uint64_t count);
uint64_t change_to_zero(uint64_t start, uint64_t end, uint32_t number);

}  // namespace backstay::image

// A function that such a place calls: `function(const Call*)` gets the registers of the system call
// and keeps all of them but those that the kernel may change. The flags on return are those of the
// comparison that the library makes behind the call.
#define BACKSTAY_CALL_SITE_FUNCTION(name, function, number, errors) \
  extern "C" [[gnu::naked, gnu::used]] void name() {                \
    __asm__ volatile(                                               \
        "push %r9\n\tpush %r8\n\tpush %r10\n\t"                     \
        "push %rdx\n\tpush %rsi\n\tpush %rdi\n\t"                   \
        "push $" #number                                            \
        "\n\tmov %rsp, %rdi\n\t"                                    \
        "push %rbp\n\tmov %rsp, %rbp\n\tand $-16, %rsp\n\t"         \
        "call " #function                                           \
        "\n\tmov %rbp, %rsp\n\tpop %rbp\n\tadd $8, %rsp\n\t"        \
        "pop %rdi\n\tpop %rsi\n\tpop %rdx\n\t"                      \
        "pop %r10\n\tpop %r8\n\tpop %r9\n\t"                        \
        "cmp $" #errors ", %rax\n\tret");                           \
  }
