// Compiled for general registers only: the code around a changed call may keep others over it.
#include "capture/image/boot/handlers.h"

#include <string.h>

#include "capture/lower/table.h"

namespace backstay::image::handlers {

namespace {

constexpr int signals_max = 64;
constexpr uint64_t reset_at_once = 0x80000000;  // SA_RESETHAND
constexpr uint64_t smallest_function = 2;       // SIG_DFL is 0, SIG_IGN is 1

long owner = 0;  // the process whose handlers these are; 0: they are not wrapped
KernelAction given[signals_max + 1];  // of the program, as last set

struct Frame {  // the kernel's struct ucontext, as far as it is used here
  uint8_t rest[296];
  uint64_t mask;
};
using Function = void (*)(int, void*, Frame*);

uint64_t fs_base() {
  uint64_t base = 0;
  __asm__ volatile("rdfsbase %0" : "=r"(base));
  return base;
}
void set_fs_base(uint64_t base) { __asm__ volatile("wrfsbase %0" : : "r"(base) : "memory"); }

}  // namespace

// By signal; never emptied, as a signal may be on its way to a handler that was just taken off.
extern "C" {
[[gnu::used]] uint64_t backstay_handlers[signals_max + 1];
}

namespace {

// A thread of MPI that was started in a call has the mask of the program's thread. The program's
// handlers are not for it: the signal goes to another thread, and none comes here again.
void hand_on(int signal, const void* info, Frame* frame) {
  frame->mask = ~0ULL;
  const long process = system_call(__NR_getpid);
  if ((given[signal].flags & reset_at_once) != 0) install(signal, given[signal]);
  if (system_call(__NR_rt_sigqueueinfo, process, signal, address_of(info)) != 0) {
    system_call(__NR_kill, process, signal);
  }
}

}  // namespace

// With an FS base of the lower half.
extern "C" [[gnu::used]] void backstay_handle_inside(int signal, void* info, Frame* frame,
                                                     Function handler) {
  const uint64_t base = fs_base();
  uint64_t* const place = lower::upper_fs_of(base);
  if (place == nullptr) return hand_on(signal, info, frame);
  const uint64_t upper = *place;
  set_fs_base(upper);
  handler(signal, info, frame);  // it may jump out: then the program's FS base is there already
  *place = upper;
  set_fs_base(base);
}

// What the kernel calls. Outside of MPI the handler is entered as by the kernel: nothing is on the
// stack that an unwinder would not know. The range of the lower half is 2 to the 40 bytes.
extern "C" [[gnu::naked, gnu::used]] void backstay_handle() {
  __asm__ volatile(
      "movslq %edi, %rax\n\t"
      "lea backstay_handlers(%rip), %rcx\n\t"
      "mov (%rcx,%rax,8), %rcx\n\t"
      "rdfsbase %rax\n\t"
      "movabs $0x4b5e00000000, %r8\n\t"
      "sub %r8, %rax\n\t"
      "shr $40, %rax\n\t"
      "je backstay_handle_inside\n\t"
      "jmp *%rcx");
}
static_assert(lower::range_start == 0x4b5e00000000 &&
              lower::range_end - lower::range_start == 1ULL << 40);

namespace {

uint64_t wrapper() { return reinterpret_cast<uint64_t>(&backstay_handle); }

KernelAction wrapped(int signal, const KernelAction& action) {
  KernelAction to = action;
  given[signal] = action;
  __atomic_store_n(&backstay_handlers[signal], action.handler, __ATOMIC_RELEASE);
  to.handler = wrapper();
  return to;
}

bool is_wrapped(int signal, const KernelAction& action) {
  return owner != 0 && signal >= 1 && signal <= signals_max && action.handler >= smallest_function;
}

}  // namespace

void begin() { owner = system_call(__NR_getpid); }

KernelAction seen_by_program(int signal, const KernelAction& action) {
  KernelAction seen = action;
  if (action.handler == wrapper()) seen.handler = backstay_handlers[signal];
  return seen;
}

void install(int signal, const KernelAction& action) {
  const KernelAction to = is_wrapped(signal, action) ? wrapped(signal, action) : action;
  sys_action(signal, &to);
}

// A child that shares this memory (vfork, posix_spawn) sets actions of its own.
long change(const Call& call) {
  const auto signal = static_cast<int>(call.arguments[0]);
  const auto* wanted = reinterpret_cast<const KernelAction*>(call.arguments[1]);
  auto* old = reinterpret_cast<KernelAction*>(call.arguments[2]);
  if (signal < 1 || signal > signals_max || call.arguments[3] != 8) {
    return system_call(__NR_rt_sigaction, signal, address_of(wanted), address_of(old),
                       static_cast<long>(call.arguments[3]));
  }
  const uint64_t before = backstay_handlers[signal];
  const KernelAction given_before = given[signal];
  const bool wraps =
      wanted != nullptr && is_wrapped(signal, *wanted) && system_call(__NR_getpid) == owner;
  KernelAction to;
  if (wanted != nullptr) to = wraps ? wrapped(signal, *wanted) : *wanted;
  const long result = sys_action(signal, wanted != nullptr ? &to : nullptr, old);
  if (result == 0 && old != nullptr && old->handler == wrapper()) old->handler = before;
  if (result != 0 && wraps) {
    backstay_handlers[signal] = before;
    given[signal] = given_before;
  }
  return result;
}

}  // namespace backstay::image::handlers
