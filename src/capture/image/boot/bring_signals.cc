#include <linux/time.h>

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/handlers.h"
#include "capture/image/boot/posix_timers.h"

namespace backstay::image {

namespace {

constexpr int signal_kill = 9;
constexpr int signal_stop = 19;
constexpr uint64_t second = 1'000'000'000;

// One that has run off, and whose signal waits, shows nothing left: the kernel starts it again when
// the signal is delivered.
void set_interval(const Timer& timer) {
  const uint64_t left = timer.value_ns > 0 ? timer.value_ns : timer.interval_ns;
  const uint64_t times[4] = {timer.interval_ns / second, timer.interval_ns % second / 1000,
                             left / second, left % second / 1000};
  system_call(__NR_setitimer, timer.kind - 1, address_of(times), 0);
}

}  // namespace

void set_signals(const Tables& tables) {
  for (int signal = 1; signal <= static_cast<int>(signals); ++signal) {
    if (signal == signal_kill || signal == signal_stop) continue;
    const Handler& handler = tables.handlers[static_cast<uint64_t>(signal) - 1];
    const KernelAction action{handler.handler, handler.flags, handler.restorer, handler.mask};
    handlers::install(signal, action);
  }
}

void set_timers(const Tables& tables) {
  for (const Timer& timer : tables.timers) {
    if (timer.kind != static_cast<uint32_t>(TimerKind::posix)) set_interval(timer);
  }
  posix_timers::start(tables);
}

}  // namespace backstay::image
