#include "capture/image/boot/describe.h"
#include "capture/image/boot/handlers.h"
#include "capture/image/boot/posix_timers.h"

namespace backstay::image {

namespace {

struct Times {
  int64_t interval_s, interval_us, value_s, value_us;
};

uint64_t ns(int64_t seconds, int64_t us) {
  return static_cast<uint64_t>(seconds) * 1'000'000'000 + static_cast<uint64_t>(us) * 1000;
}

void describe_intervals(Tables& tables) {
  for (uint32_t which = 0; which < 3; ++which) {
    Times times{};
    system_call(__NR_getitimer, which, address_of(&times));
    if ((times.value_s | times.value_us | times.interval_s | times.interval_us) == 0) continue;
    Timer* timer = tables.timers.add();
    if (timer == nullptr) return;
    timer->kind = which + 1;
    timer->interval_ns = ns(times.interval_s, times.interval_us);
    timer->value_ns = ns(times.value_s, times.value_us);
  }
}

}  // namespace

void describe_signals(Tables& tables, Trouble& trouble) {
  for (int signal = 1; signal <= static_cast<int>(signals); ++signal) {
    KernelAction action;
    sys_action(signal, nullptr, &action);
    const bool lower = action.handler >= lower::range_start && action.handler < lower::range_end;
    if (lower) action = KernelAction();
    action = handlers::seen_by_program(signal, action);
    *tables.handlers.add() = Handler{action.handler, action.flags, action.restorer, action.mask};
  }
  describe_intervals(tables);
  posix_timers::describe(tables, trouble);
}

}  // namespace backstay::image
