// Stopping all threads of the program, at whatever instruction they are, and letting them go on.
//
// Each gets a signal whose handler parks it. The kernel has then put its registers, its extended
// state and its mask into a frame on its own stack, so they are part of its memory, and a restart
// needs no more than `rt_sigreturn` on that frame. The signal is chosen at each cut and our handler
// is there only meanwhile, so the program never sees it. Called by the control thread only.
#pragma once

#include "capture/image/boot/rights.h"
#include "capture/image/boot/window.h"

namespace backstay::image {

inline constexpr uint32_t threads_max = 4096;
inline constexpr const char* exec_under_way = "it is just replacing itself by another program";

// A frame as the kernel makes it: what `uc` in a handler points to (the kernel's struct ucontext).
struct Context {
  uint64_t flags, link;
  uint64_t stack_address;
  uint32_t stack_flags, stack_zeros;
  uint64_t stack_bytes;
  uint64_t registers[18];  // r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip rflags
  uint64_t selectors, error, trap, old_mask, fault;
  uint64_t extended;  // address of the XSAVE area
  uint64_t reserved[8];
  uint64_t mask;
};
enum { reg_rdi = 8, reg_rsi = 9, reg_rdx = 12, reg_rax = 13, reg_rsp = 15, reg_rip = 16 };
inline constexpr int reg_r10 = 2;

struct Parked {
  uint32_t tid = 0;
  Context* context = nullptr;
  uint64_t fs = 0, gs = 0;
  uint64_t clear_tid = 0;
  uint64_t robust_list = 0, robust_bytes = 0;
  rights::Rights rights{};
};

struct Stopped {
  Parked* threads = nullptr;
  uint64_t count = 0;
  uint64_t signal = 0;
  KernelAction action;  // the program's own for that signal
  bool leader_ended = false;
};

// Trouble: a thread that does not stop, or no signal that is free. Nothing is stopped then.
void stop_threads(Stopped& stopped, Trouble& trouble);
void resume_threads(const Stopped& stopped);
// Of a thread that blocks all signals: takes back the request to stop that waits for it, if any.
bool take_own_signal();

}  // namespace backstay::image
