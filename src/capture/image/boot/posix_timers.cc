#include "capture/image/boot/posix_timers.h"

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/files.h"

namespace backstay::image::posix_timers {

namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint32_t tells_nobody = 1;  // SIGEV_NONE
constexpr uint32_t tells_thread = 4;  // SIGEV_THREAD_ID
// The kernel numbers a process's timers in turn. A restart makes the numbers between two timers and
// removes them again, this many at most.
constexpr uint32_t counted_most = 4'000'000;

struct Times {
  uint64_t interval_s, interval_ns, value_s, value_ns;
};

bool is_posix(const Timer& timer) { return timer.kind == static_cast<uint32_t>(TimerKind::posix); }

// A clock of processor time is negative, and has the id of a process or thread above these bits; 0:
// the one that made the timer.
constexpr int32_t clock_bits = 7;
constexpr int32_t clock_of_thread = 4;

uint32_t counted_by(const Timer& timer) {
  if (timer.clock >= 0) return 0;
  const auto id = static_cast<uint32_t>(~(timer.clock >> 3));
  const bool own = (timer.clock & clock_of_thread) != 0 && (timer.notify & tells_thread) != 0;
  return id == 0 && own ? timer.tid : id;
}

// ID: 0 / signal: 14/00007ffd... / notify: signal/pid.123 / ClockID: 1
void take_line(const char* line, Timer& timer) {
  const char* at = line;
  if (begins_with(line, "signal: ")) {
    at += 8;
    timer.signal = static_cast<uint32_t>(read_decimal(at));
    if (*at == '/') timer.notify_value = read_hex(++at);
  } else if (begins_with(line, "notify: ")) {
    timer.notify = begins_with(at + 8, "none") ? tells_nobody : 0;
    while (*at != 0 && *at != '.') ++at;
    if (at > line + 3 && begins_with(at - 3, "tid")) timer.notify |= tells_thread;
    if (*at == '.') timer.tid = static_cast<uint32_t>(read_decimal(++at));
  } else if (begins_with(line, "ClockID: ")) {
    at += begins_with(line + 9, "-") ? 10 : 9;
    const bool negative = at[-1] == '-';
    const auto number = static_cast<int32_t>(read_decimal(at));
    timer.clock = negative ? -number : number;
  }
}

// One whose thread has ended runs on, and tells nobody.
void make(const Timer& timer, Trouble& trouble) {
  const uint32_t told = (timer.notify & tells_thread) != 0 ? timer.tid : 0;
  const uint32_t counts = counted_by(timer);
  const uint32_t now[2] = {new_thread_id(told), new_thread_id(counts)};
  const bool ended = (told != 0 && now[0] == 0) || (counts != 0 && now[1] == 0);
  const struct {
    uint64_t value;
    uint32_t signal, notify, tid;
    uint8_t zeros[44];
  } event{timer.notify_value, timer.signal, ended ? tells_nobody : timer.notify, now[0], {}};
  int32_t clock = timer.clock;
  if (counts != 0) clock = (~static_cast<int32_t>(now[1]) << 3) | (clock & clock_bits);
  for (;;) {
    uint32_t id = 0;
    const long wrong = system_call(__NR_timer_create, clock, address_of(&event), address_of(&id));
    if (wrong == 0 && id == timer.id) return;
    if (wrong == 0) system_call(__NR_timer_delete, id);
    if (wrong == 0 && id < timer.id) continue;
    trouble << "POSIX timer " << uint64_t{timer.id} << " cannot be made again (error " << -wrong
            << ")";
    return;
  }
}

}  // namespace

void describe(Tables& tables, Trouble& trouble) {
  Lines lines("/proc/self/timers");
  if (!lines.good()) trouble << "this kernel does not tell of POSIX timers (/proc/self/timers)";
  Timer* timer = nullptr;
  while (const char* line = lines.next()) {
    if (!begins_with(line, "ID: ")) {
      if (timer != nullptr) take_line(line, *timer);
      continue;
    }
    timer = tables.timers.add();
    if (timer == nullptr) {
      trouble << "it has more than " << tables.timers.room() << " timers";
      return;
    }
    const char* at = line + 4;
    timer->kind = static_cast<uint32_t>(TimerKind::posix);
    timer->id = static_cast<uint32_t>(read_decimal(at));
    Times times{};
    system_call(__NR_timer_gettime, timer->id, address_of(&times));
    timer->interval_ns = times.interval_s * second + times.interval_ns;
    timer->value_ns = times.value_s * second + times.value_ns;
  }
}

void check(const Tables& tables, Trouble& trouble) {
  for (const Timer& timer : tables.timers) {
    const uint32_t counts = counted_by(timer);
    const bool own =
        counts == 0 || counts == tables.identity.pid || (timer.clock & clock_of_thread) != 0;
    if (!is_posix(timer) || (own && timer.id <= counted_most) || !trouble.empty()) continue;
    trouble << "POSIX timer " << uint64_t{timer.id} << " cannot come back: "
            << (own ? "its number is too high" : "it runs on another process's processor time");
  }
}

void take_signals(Tables& tables) {
  for (Timer& timer : tables.timers) {
    if (!is_posix(timer) || timer.signal == 0 || (timer.notify & tells_nobody) != 0) continue;
    uint64_t* pending = (timer.notify & tells_thread) != 0 ? nullptr : &tables.identity.pending;
    for (Thread& thread : tables.threads) {
      if (pending == nullptr && thread.tid == timer.tid) pending = &thread.pending;
    }
    const uint64_t bit = 1ULL << (timer.signal - 1);
    if (pending == nullptr || (*pending & bit) == 0) continue;
    timer.value_ns = 1;
    *pending &= ~bit;
  }
}

void make(const Tables& tables, Trouble& trouble) {
  for (uint64_t i = tables.timers.size(); i > 0 && trouble.empty(); --i) {  // the newest is first
    const Timer& timer = tables.timers[i - 1];
    if (is_posix(timer)) make(timer, trouble);
  }
}

void start(const Tables& tables) {
  for (const Timer& timer : tables.timers) {
    if (!is_posix(timer)) continue;
    const Times times{timer.interval_ns / second, timer.interval_ns % second,
                      timer.value_ns / second, timer.value_ns % second};
    const long wrong = system_call(__NR_timer_settime, timer.id, 0, address_of(&times), 0);
    if (wrong != 0) give_up(Text() << "POSIX timer " << uint64_t{timer.id} << " cannot be set", 78);
  }
}

}  // namespace backstay::image::posix_timers
