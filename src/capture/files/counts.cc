#include "capture/files/counts.h"

#include <time.h>

#include <atomic>

namespace backstay::files {
namespace {

using Counter = std::atomic<std::uint64_t>;

struct alignas(64) Sizes {  // threads that write in different sizes do not disturb each other
  Counter writes, bytes, timed, timed_ns;
};
struct Waits {
  Counter calls, ns, longest_ns;
};
struct Files {
  Counter files, bytes;
};

Sizes sizes[write_classes];
Waits waits[waited_kinds];
Files direct;
Files real;
Counter locked, native;
std::atomic<bool> counted;

constexpr std::uint64_t always_timed_from = 64 << 10;
constexpr std::uint64_t timed_one_in = 16;

// Of the vDSO: no system call.
std::uint64_t now_ns() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void add(Counter& to, std::uint64_t value) { to.fetch_add(value, std::memory_order_relaxed); }
std::uint64_t take(Counter& from) { return from.exchange(0, std::memory_order_relaxed); }

void raise_to(Counter& to, std::uint64_t value) {
  std::uint64_t known = to.load(std::memory_order_relaxed);
  while (known < value && !to.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

void note() {
  if (!counted.load(std::memory_order_relaxed)) counted.store(true, std::memory_order_relaxed);
}

void count(Counter& to) {
  add(to, 1);
  note();
}

void count(Files& to, std::uint64_t bytes) {
  add(to.files, 1);
  add(to.bytes, bytes);
  note();
}

std::size_t class_of(std::uint64_t bytes) {
  std::size_t number = 0;
  while (number + 1 < write_classes && bytes >= write_limits[number]) ++number;
  return number;
}

FileCount take(Files& from) { return {take(from.files), take(from.bytes)}; }

void give_back(Files& to, const FileCount& from) {
  add(to.files, from.files);
  add(to.bytes, from.bytes);
}

}  // namespace

CountedWrite::CountedWrite(std::uint64_t bytes) : of_(class_of(bytes)) {
  const std::uint64_t before = sizes[of_].writes.load(std::memory_order_relaxed);
  if (bytes >= always_timed_from || before % timed_one_in == 0) began_ns_ = now_ns();
}

ssize_t CountedWrite::done(ssize_t written) const {
  if (written < 0) return written;
  Sizes& to = sizes[of_];
  add(to.writes, 1);
  add(to.bytes, static_cast<std::uint64_t>(written));
  if (began_ns_ != 0) {
    add(to.timed, 1);
    add(to.timed_ns, now_ns() - began_ns_);
    note();
  }
  return written;
}

CountedWait::CountedWait(Waited what) : what_(what), began_ns_(now_ns()) {}

CountedWait::~CountedWait() {
  const std::uint64_t took_ns = now_ns() - began_ns_;
  Waits& to = waits[static_cast<std::size_t>(what_)];
  add(to.calls, 1);
  add(to.ns, took_ns);
  raise_to(to.longest_ns, took_ns);
  note();
}

void count_direct(std::uint64_t bytes) { count(direct, bytes); }
void count_real(std::uint64_t bytes) { count(real, bytes); }
void count_locked() { count(locked); }
void count_native() { count(native); }

bool has_counts() { return counted.load(std::memory_order_relaxed); }

Counts take_counts() {
  Counts taken;
  counted.store(false, std::memory_order_relaxed);
  for (std::size_t number = 0; number < write_classes; ++number) {
    Sizes& from = sizes[number];
    taken.writes[number] = {take(from.writes), take(from.bytes), take(from.timed),
                            take(from.timed_ns)};
  }
  for (std::size_t number = 0; number < waited_kinds; ++number) {
    Waits& from = waits[number];
    taken.waits[number] = {take(from.calls), take(from.ns), take(from.longest_ns)};
  }
  taken.direct = take(direct);
  taken.real = take(real);
  taken.locked = take(locked);
  taken.native = take(native);
  return taken;
}

void give_back(const Counts& counts) {
  for (std::size_t number = 0; number < write_classes; ++number) {
    const WriteCount& from = counts.writes[number];
    Sizes& to = sizes[number];
    add(to.writes, from.writes);
    add(to.bytes, from.bytes);
    add(to.timed, from.timed);
    add(to.timed_ns, from.timed_ns);
  }
  for (std::size_t number = 0; number < waited_kinds; ++number) {
    const WaitCount& from = counts.waits[number];
    Waits& to = waits[number];
    add(to.calls, from.calls);
    add(to.ns, from.ns);
    raise_to(to.longest_ns, from.longest_ns);
  }
  give_back(direct, counts.direct);
  give_back(real, counts.real);
  add(locked, counts.locked);
  add(native, counts.native);
  note();
}

void forget_counts() { (void)take_counts(); }

}  // namespace backstay::files
