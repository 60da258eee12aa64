#include "capture/image/boot/events.h"

#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {

constexpr uint32_t not_blocking = 04000;
constexpr long add_to_set = 1;  // EPOLL_CTL_ADD

// What the kernel wants, packed as it has it.
struct __attribute__((packed)) EpollEvent {
  uint32_t events;
  uint64_t data;
};
struct TimerSpec {
  uint64_t interval_s, interval_ns, left_s, left_ns;
};

Lines info_of(const Descriptor& one) {
  Text path;
  path << "/proc/self/fdinfo/" << uint64_t{one.number};
  return Lines(path.c_str());
}

const char* behind_spaces(const char* at) {
  while (*at == ' ' || *at == '\t') ++at;
  return at;
}

// Finds `name` in the line, and leaves `at` at the number behind it.
bool find(const char* line, const char* name, const char*& at) {
  for (; *line != 0; ++line) {
    if (!begins_with(line, name)) continue;
    at = behind_spaces(line + strlen(name));
    return true;
  }
  return false;
}

void keep(Tables& tables, Descriptor& one, const void* bytes, uint64_t size, Trouble& trouble) {
  const uint64_t at = tables.contents.size();
  if (size > tables.contents.room() - at) {
    trouble << "the image has no room for the state of descriptor " << uint64_t{one.number};
    return;
  }
  tables.contents.resize(at + size);
  memcpy(&tables.contents[at], bytes, size);
  if (one.contents_bytes == 0) one.contents = at;
  one.contents_bytes += size;
}

template <typename State>
bool kept(const Tables& tables, const Descriptor& one, uint64_t index, State& state) {
  if ((index + 1) * sizeof(State) > one.contents_bytes) return false;
  memcpy(&state, &tables.contents[one.contents + index * sizeof(State)], sizeof(State));
  return true;
}

void keep_counter(Tables& tables, Descriptor& one, Trouble& trouble) {
  Counter state{};
  Lines lines = info_of(one);
  const char* at = nullptr;
  while (const char* line = lines.next()) {
    if (find(line, "eventfd-count:", at)) state.count = read_hex(at);
    if (find(line, "eventfd-semaphore:", at)) state.semaphore = read_decimal(at);
  }
  keep(tables, one, &state, sizeof state, trouble);
}

const Descriptor* watched(const Tables& tables, uint64_t number, uint64_t inode) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.number == number && one.inode == inode) return &one;
  }
  return nullptr;
}

void keep_epoll(Tables& tables, Descriptor& one, Trouble& trouble) {
  Lines lines = info_of(one);
  while (const char* line = lines.next()) {
    const char* at = nullptr;
    if (!find(line, "tfd:", at)) continue;
    Watched state{};
    state.number = static_cast<uint32_t>(read_decimal(at));
    if (find(line, "events:", at)) state.events = static_cast<uint32_t>(read_hex(at));
    if (find(line, "data:", at)) state.data = read_hex(at);
    const uint64_t inode = find(line, "ino:", at) ? read_hex(at) : 0;
    if (watched(tables, state.number, inode) == nullptr) {
      trouble << "descriptor " << uint64_t{one.number} << " is an epoll set that watches "
              << "descriptor " << uint64_t{state.number}
              << ", which is closed or not the program's";
      return;
    }
    keep(tables, one, &state, sizeof state, trouble);
  }
}

// "(1, 500)"
void read_pair(const char* at, uint64_t& seconds, uint64_t& nanoseconds) {
  if (*at == '(') ++at;
  seconds = read_decimal(at);
  if (*at == ',') nanoseconds = read_decimal(at = behind_spaces(at + 1));
}

void keep_timer(Tables& tables, Descriptor& one, Trouble& trouble) {
  TimerState state{};
  Lines lines = info_of(one);
  const char* at = nullptr;
  while (const char* line = lines.next()) {
    if (find(line, "clockid:", at)) state.clock = read_decimal(at);
    if (find(line, "ticks:", at)) state.expired = read_decimal(at);
    if (find(line, "it_value:", at)) read_pair(at, state.left_s, state.left_ns);
    if (find(line, "it_interval:", at)) read_pair(at, state.interval_s, state.interval_ns);
  }
  keep(tables, one, &state, sizeof state, trouble);
}

void keep_signals(Tables& tables, Descriptor& one, Trouble& trouble) {
  uint64_t mask = 0;
  Lines lines = info_of(one);
  const char* at = nullptr;
  while (const char* line = lines.next()) {
    if (find(line, "sigmask:", at)) mask = read_hex(at);
  }
  keep(tables, one, &mask, sizeof mask, trouble);
}

long open_counter(const Tables& tables, const Descriptor& one) {
  Counter state;
  if (!kept(tables, one, 0, state)) return -1;
  const long fd = system_call(__NR_eventfd2, 0,
                              static_cast<long>((one.flags & not_blocking) | state.semaphore));
  if (fd >= 0 && state.count > 0) sys_write(fd, &state.count, sizeof state.count);
  return fd;
}

// One that has expired expires once more at once: the number of times is all that is lost.
long open_timer(const Tables& tables, const Descriptor& one) {
  TimerState state;
  if (!kept(tables, one, 0, state)) return -1;
  const long fd = system_call(__NR_timerfd_create, static_cast<long>(state.clock),
                              static_cast<long>(one.flags & not_blocking));
  TimerSpec spec{state.interval_s, state.interval_ns, state.left_s, state.left_ns};
  if (state.expired > 0) {
    spec.left_s = 0;
    spec.left_ns = 1;
  }
  if (fd >= 0) system_call(__NR_timerfd_settime, fd, 0, address_of(&spec), 0);
  return fd;
}

long open_signals(const Tables& tables, const Descriptor& one) {
  uint64_t mask = 0;
  if (!kept(tables, one, 0, mask)) return -1;
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

void watch_again(const Tables& tables, Trouble& trouble) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.kind != static_cast<uint32_t>(DescriptorKind::epoll)) continue;
    if (one.same_as != one.number) continue;
    Watched state;
    for (uint64_t i = 0; kept(tables, one, i, state); ++i) {
      EpollEvent event{state.events, state.data};
      const long added =
          system_call(__NR_epoll_ctl, one.number, add_to_set, state.number, address_of(&event));
      if (added == 0) continue;
      trouble << "epoll set " << uint64_t{one.number} << " cannot watch descriptor "
              << uint64_t{state.number} << " again (error " << -added << ")";
      return;
    }
  }
}

}  // namespace backstay::image
