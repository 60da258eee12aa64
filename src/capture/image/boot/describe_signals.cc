#include "capture/image/boot/describe.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/handlers.h"

namespace backstay::image {

namespace {

struct Times {
  int64_t interval_s, interval_part, value_s, value_part;
};

uint64_t ns(int64_t seconds, int64_t part, uint64_t part_ns) {
  return static_cast<uint64_t>(seconds) * 1'000'000'000 + static_cast<uint64_t>(part) * part_ns;
}

void describe_intervals(Tables& tables) {
  for (uint32_t which = 0; which < 3; ++which) {
    Times times{};
    system_call(__NR_getitimer, which, address_of(&times));
    const uint64_t any = static_cast<uint64_t>(times.value_s | times.value_part | times.interval_s |
                                               times.interval_part);
    if (any == 0) continue;
    Timer* timer = tables.timers.add();
    if (timer == nullptr) return;
    timer->kind = which + 1;
    timer->interval_ns = ns(times.interval_s, times.interval_part, 1000);
    timer->value_ns = ns(times.value_s, times.value_part, 1000);
  }
}

// ID: 0 / signal: 14/00007ffd... / notify: signal/pid.123 / ClockID: 1
void describe_timers(Tables& tables) {
  Lines lines("/proc/self/timers");
  Timer* timer = nullptr;
  while (const char* line = lines.next()) {
    const char* at = line;
    if (begins_with(line, "ID: ")) {
      timer = tables.timers.add();
      if (timer == nullptr) return;
      timer->kind = static_cast<uint32_t>(TimerKind::posix);
      at += 4;
      timer->id = static_cast<uint32_t>(read_decimal(at));
      Times times{};
      system_call(__NR_timer_gettime, timer->id, address_of(&times));
      timer->interval_ns = ns(times.interval_s, times.interval_part, 1);
      timer->value_ns = ns(times.value_s, times.value_part, 1);
    } else if (timer != nullptr && begins_with(line, "signal: ")) {
      at += 8;
      timer->signal = static_cast<uint32_t>(read_decimal(at));
      if (*at == '/') timer->notify_value = read_hex(++at);
    } else if (timer != nullptr && begins_with(line, "notify: ")) {
      timer->notify = begins_with(at + 8, "none") ? 1 : 0;  // SIGEV_NONE, SIGEV_SIGNAL
      while (*at != 0 && *at != '.') ++at;
      const bool one_thread = at > line + 3 && begins_with(at - 3, "tid");
      if (one_thread) timer->notify |= 4;  // SIGEV_THREAD_ID
      if (*at == '.') timer->tid = static_cast<uint32_t>(read_decimal(++at));
    } else if (timer != nullptr && begins_with(line, "ClockID: ")) {
      at += 9;
      timer->clock = static_cast<int32_t>(read_decimal(at));
    }
  }
}

}  // namespace

void describe_signals(Tables& tables) {
  for (int signal = 1; signal <= static_cast<int>(signals); ++signal) {
    KernelAction action;
    sys_action(signal, nullptr, &action);
    const bool lower = action.handler >= lower::range_start && action.handler < lower::range_end;
    if (lower) action = KernelAction();
    action = handlers::seen_by_program(signal, action);
    *tables.handlers.add() = Handler{action.handler, action.flags, action.restorer, action.mask};
  }
  describe_intervals(tables);
  describe_timers(tables);
}

}  // namespace backstay::image
