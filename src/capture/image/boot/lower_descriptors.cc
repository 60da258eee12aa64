// Compiled for general registers only: the code around a changed call may keep others over it.
#include "capture/image/boot/lower_descriptors.h"

#include <linux/mman.h>

#include "capture/image/boot/call_stubs.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/steer.h"

namespace backstay::image::lower_descriptors {

namespace {

constexpr uint64_t most = 1 << 20;  // Linux's default limit (fs.nr_open)
uint64_t inodes[most];              // 0: not the lower half's
constexpr uint64_t is_known = 1ULL << 63;

constexpr uint64_t stubs_bytes = 16 << 10;
constexpr uint32_t duplicate = 0;                 // F_DUPFD
constexpr uint32_t duplicate_and_close = 1030;    // F_DUPFD_CLOEXEC
constexpr uint64_t close_on_exec_only = 1U << 2;  // CLOSE_RANGE_CLOEXEC

enum class Kind : uint8_t { makes, makes_pair, makes_pair_late, duplicates, closes, closes_range };
struct Wanted {
  uint32_t number;
  Kind kind;
  const char* needed;  // the name of one that must be there
};
constexpr Wanted all[] = {{__NR_open, Kind::makes, nullptr},
                          {__NR_openat, Kind::makes, "openat"},
                          {__NR_openat2, Kind::makes, nullptr},
                          {__NR_creat, Kind::makes, nullptr},
                          {__NR_socket, Kind::makes, "socket"},
                          {__NR_socketpair, Kind::makes_pair_late, nullptr},
                          {__NR_accept, Kind::makes, nullptr},
                          {__NR_accept4, Kind::makes, nullptr},
                          {__NR_pipe, Kind::makes_pair, nullptr},
                          {__NR_pipe2, Kind::makes_pair, nullptr},
                          {__NR_dup, Kind::makes, nullptr},
                          {__NR_dup2, Kind::makes, nullptr},
                          {__NR_dup3, Kind::makes, nullptr},
                          {__NR_fcntl, Kind::duplicates, "fcntl"},
                          {__NR_epoll_create, Kind::makes, nullptr},
                          {__NR_epoll_create1, Kind::makes, nullptr},
                          {__NR_eventfd, Kind::makes, nullptr},
                          {__NR_eventfd2, Kind::makes, nullptr},
                          {__NR_signalfd, Kind::makes, nullptr},
                          {__NR_signalfd4, Kind::makes, nullptr},
                          {__NR_timerfd_create, Kind::makes, nullptr},
                          {__NR_inotify_init, Kind::makes, nullptr},
                          {__NR_inotify_init1, Kind::makes, nullptr},
                          {__NR_memfd_create, Kind::makes, nullptr},
                          {__NR_pidfd_open, Kind::makes, nullptr},
                          {__NR_pidfd_getfd, Kind::makes, nullptr},
                          {__NR_userfaultfd, Kind::makes, nullptr},
                          {__NR_perf_event_open, Kind::makes, nullptr},
                          {__NR_io_uring_setup, Kind::makes, nullptr},
                          {__NR_close, Kind::closes, "close"},
                          {__NR_close_range, Kind::closes_range, nullptr}};
constexpr uint64_t count = sizeof all / sizeof all[0];
bool changed[count];
long owner = 0;  // a child that shares this memory (vfork) has descriptors of its own

const Wanted* find(uint64_t number) {
  for (const Wanted& one : all) {
    if (one.number == number) return &one;
  }
  return nullptr;
}

bool wants(uint32_t number) {
  const Wanted* one = find(number);
  if (one != nullptr) changed[one - all] = true;
  return one != nullptr || number == any_number;
}

void note_pair(uint64_t at) {
  const auto* numbers = reinterpret_cast<const int32_t*>(at);
  note(static_cast<uint32_t>(numbers[0]));
  note(static_cast<uint32_t>(numbers[1]));
}

// Another thread may get the number as soon as it is free, so it is forgotten before.
void before(Kind kind, const uint64_t* a) {
  if (kind == Kind::closes) forget(static_cast<uint32_t>(a[0]));
  if (kind != Kind::closes_range || (a[2] & close_on_exec_only) != 0) return;
  for (uint64_t i = static_cast<uint32_t>(a[0]); i <= static_cast<uint32_t>(a[1]) && i < most;
       ++i) {
    forget(i);
  }
}

void after(Kind kind, const uint64_t* a, long result) {
  const auto command = static_cast<uint32_t>(a[1]);
  switch (kind) {
    case Kind::makes: note(static_cast<uint64_t>(result)); break;
    case Kind::makes_pair: note_pair(a[0]); break;
    case Kind::makes_pair_late: note_pair(a[3]); break;
    case Kind::duplicates:
      if (command == duplicate || command == duplicate_and_close) {
        note(static_cast<uint64_t>(result));
      }
      break;
    default: break;
  }
}

}  // namespace

extern "C" [[gnu::used]] long backstay_descriptor_call(const Call* call) {
  const uint64_t* a = call->arguments;
  const Wanted* one = find(call->number);
  const bool own = one != nullptr && system_call(__NR_getpid) == owner;
  if (own) before(one->kind, a);
  const long result = by_kernel(*call);
  if (own && result >= 0) after(one->kind, a, result);
  return result;
}

BACKSTAY_STUB_FUNCTION(backstay_descriptor_site, backstay_descriptor_call)

const char* change_calls(uint64_t start, uint64_t end) {
  owner = system_call(__NR_getpid);
  const long room = steer::map(stubs_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
  if (room < 0) return "room for stubs";
  const auto at = static_cast<uint64_t>(room);
  Stubs stubs{at, at + stubs_bytes, at};
  if (!change_to_stubs(start, end, wants, backstay_descriptor_site, stubs)) return "near memory";
  for (const Wanted& one : all) {
    if (one.needed != nullptr && !changed[&one - all]) return one.needed;
  }
  return nullptr;
}

void note(uint64_t number) {
  FileStatus status;
  if (number >= most || !descriptor_status(static_cast<long>(number), status)) return;
  __atomic_store_n(&inodes[number], status.inode | is_known, __ATOMIC_SEQ_CST);
}

void forget(uint64_t number) {
  if (number < most) __atomic_store_n(&inodes[number], 0, __ATOMIC_SEQ_CST);
}

bool has(uint64_t number, uint64_t inode) {
  return number < most && __atomic_load_n(&inodes[number], __ATOMIC_SEQ_CST) == (inode | is_known);
}

bool is_noted(int number) {
  const auto at = static_cast<uint64_t>(number);
  return at < most && __atomic_load_n(&inodes[at], __ATOMIC_SEQ_CST) != 0;
}

void note_handed_in(long control) {
  constexpr uint64_t standard = 3;
  each_number("/proc/self/fd", [&](uint64_t number) {
    FileStatus status;
    if (number < standard || static_cast<long>(number) == control ||
        !descriptor_status(static_cast<long>(number), status)) {
      return;
    }
    if (!status.is_regular() && !status.is_directory() && !status.is_device()) note(number);
  });
}

void list(Text& numbers) {
  each_number("/proc/self/fd", [&](uint64_t number) {
    FileStatus status;
    if (descriptor_status(static_cast<long>(number), status) && has(number, status.inode)) {
      numbers << number << ",";
    }
  });
}

void note_list(const char* numbers) {
  while (*numbers >= '0' && *numbers <= '9') {
    note(read_decimal(numbers));
    if (*numbers == ',') ++numbers;
  }
}

}  // namespace backstay::image::lower_descriptors
