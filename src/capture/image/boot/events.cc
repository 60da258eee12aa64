#include "capture/image/boot/events.h"

#include "capture/image/boot/descriptor_state.h"
#include "capture/image/boot/epoll_sets.h"

namespace backstay::image {

namespace {

constexpr uint32_t not_blocking = 04000;
constexpr uint32_t clock_of_day = 0;
constexpr uint32_t clock_of_day_alarm = 8;
constexpr uint64_t expiry_ns = 200'000;  // within this time the kernel counts an expiry

struct TimerSpec {
  uint64_t interval_s, interval_ns, left_s, left_ns;
};

long add_to(long fd, uint64_t count) {
  return count == 0 ? 0 : sys_write(fd, &count, sizeof count);
}

// Whether a read takes one (EFD_SEMAPHORE). Kernels before 6.5 do not tell, so this reads, and puts
// the count back. The program stands still, and reads or writes nothing meanwhile.
bool takes_one(const Descriptor& one, uint64_t count) {
  const Borrowed borrowed(one);
  const uint64_t added = count < 2 ? 2 - count : 0;
  uint64_t got = 0;
  if (borrowed.fd() < 0 || add_to(borrowed.fd(), added) < 0 ||
      sys_read(borrowed.fd(), &got, sizeof got) != sizeof got) {
    return false;
  }
  if (got > 1) {
    add_to(borrowed.fd(), got - added);
    return false;
  }
  if (added == 0) add_to(borrowed.fd(), 1);
  if (added == 2) sys_read(borrowed.fd(), &got, sizeof got);
  return true;
}

void keep_counter(Tables& tables, Descriptor& one, Trouble& trouble) {
  Counter state{};
  bool told = false;
  Lines lines = info_of(one);
  const char* at = nullptr;
  while (const char* line = lines.next()) {
    if (find_in(line, "eventfd-count:", at)) state.count = read_hex(at);
    if (!find_in(line, "eventfd-semaphore:", at)) continue;
    state.semaphore = read_decimal(at);
    told = true;
  }
  if (!told) state.semaphore = takes_one(one, state.count) ? 1 : 0;
  keep_state(tables, one, &state, sizeof state, trouble);
}

// "(1, 500)"
void read_pair(const char* at, uint64_t& seconds, uint64_t& nanoseconds) {
  if (*at == '(') ++at;
  seconds = read_decimal(at);
  while (*at == ',' || *at == ' ') ++at;
  nanoseconds = read_decimal(at);
}

TimerState read_timer(const Descriptor& one) {
  TimerState state{};
  Lines lines = info_of(one);
  const char* at = nullptr;
  while (const char* line = lines.next()) {
    if (find_in(line, "clockid:", at)) state.clock = static_cast<uint32_t>(read_decimal(at));
    if (find_in(line, "ticks:", at)) state.expired = read_decimal(at);
    if (find_in(line, "settime flags:", at)) state.flags = static_cast<uint32_t>(read_decimal(at));
    if (find_in(line, "it_value:", at)) read_pair(at, state.left_s, state.left_ns);
    if (find_in(line, "it_interval:", at)) read_pair(at, state.interval_s, state.interval_ns);
  }
  return state;
}

bool is_set(const TimerState& state) {
  return state.left_s != 0 || state.left_ns != 0 || state.expired != 0;
}

// A timer at a moment of the wall clock keeps the moment, any other one the time that was left.
bool keeps_moment(const TimerState& state) {
  return (state.flags & timer_absolute) != 0 && is_set(state) && state.expired == 0 &&
         (state.clock == clock_of_day || state.clock == clock_of_day_alarm);
}

// Puts the moment in the place of the time that is left.
void make_moment(TimerState& state) {
  constexpr uint64_t second = 1'000'000'000;
  const uint64_t now = now_ns(clock_of_day);
  const uint64_t nanoseconds = state.left_ns + now % second;
  state.left_s += now / second + nanoseconds / second;
  state.left_ns = nanoseconds % second;
}

// A timer that has come to its end, but whose expiry the kernel has not counted yet, looks as if it
// was not set. So one that looks so is read again.
void keep_timer(Tables& tables, Descriptor& one, Trouble& trouble) {
  TimerState state = read_timer(one);
  if (!is_set(state)) {
    const uint64_t time[2] = {0, expiry_ns};
    system_call(__NR_nanosleep, address_of(time), 0);
    state = read_timer(one);
  }
  if (keeps_moment(state)) make_moment(state);
  keep_state(tables, one, &state, sizeof state, trouble);
}

void keep_signals(Tables& tables, Descriptor& one, Trouble& trouble) {
  uint64_t mask = 0;
  Lines lines = info_of(one);
  const char* at = nullptr;
  while (const char* line = lines.next()) {
    if (find_in(line, "sigmask:", at)) mask = read_hex(at);
  }
  keep_state(tables, one, &mask, sizeof mask, trouble);
}

long open_counter(const Tables& tables, const Descriptor& one) {
  Counter state;
  if (!state_of(tables, one, 0, state)) return -1;
  const long fd = system_call(__NR_eventfd2, 0,
                              static_cast<long>((one.flags & not_blocking) | state.semaphore));
  if (fd >= 0) add_to(fd, state.count);
  return fd;
}

// A timer that has expired and was not read expires again, once and at once. How often it had
// expired is lost. Its interval begins anew.
long open_timer(const Tables& tables, const Descriptor& one) {
  TimerState state;
  if (!state_of(tables, one, 0, state)) return -1;
  const long fd = system_call(__NR_timerfd_create, static_cast<long>(state.clock),
                              static_cast<long>(one.flags & not_blocking));
  TimerSpec spec{state.interval_s, state.interval_ns, state.left_s, state.left_ns};
  long flags = 0;
  if (state.expired > 0) {
    spec.left_s = 0;
    spec.left_ns = 1;
  } else if (keeps_moment(state)) {
    flags = static_cast<long>(state.flags);
  }
  if (fd >= 0) system_call(__NR_timerfd_settime, fd, flags, address_of(&spec), 0);
  return fd;
}

long open_signals(const Tables& tables, const Descriptor& one) {
  uint64_t mask = 0;
  if (!state_of(tables, one, 0, mask)) return -1;
  return system_call(__NR_signalfd4, -1, address_of(&mask), sizeof mask,
                     static_cast<long>(one.flags & not_blocking));
}

}  // namespace

DescriptorKind event_kind(const char* name) {
  if (same_text(name, "anon_inode:[eventfd]")) return DescriptorKind::counter;
  if (same_text(name, "anon_inode:[eventpoll]")) return DescriptorKind::epoll;
  if (same_text(name, "anon_inode:[timerfd]")) return DescriptorKind::timer;
  if (same_text(name, "anon_inode:[signalfd]")) return DescriptorKind::signal_set;
  return DescriptorKind::inherited;
}

void keep_event(Tables& tables, Descriptor& one, Trouble& trouble) {
  switch (static_cast<DescriptorKind>(one.kind)) {
    case DescriptorKind::counter: return keep_counter(tables, one, trouble);
    case DescriptorKind::epoll: return keep_epoll(tables, one, trouble);
    case DescriptorKind::timer: return keep_timer(tables, one, trouble);
    default: return keep_signals(tables, one, trouble);
  }
}

long open_event(const Tables& tables, const Descriptor& one) {
  switch (static_cast<DescriptorKind>(one.kind)) {
    case DescriptorKind::counter: return open_counter(tables, one);
    case DescriptorKind::epoll: return system_call(__NR_epoll_create1, 0);
    case DescriptorKind::timer: return open_timer(tables, one);
    default: return open_signals(tables, one);
  }
}

}  // namespace backstay::image
