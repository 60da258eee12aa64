#include "capture/files/counts.h"

#include <time.h>

#include <atomic>

namespace backstay::files {
namespace {

alignas(64) Counts all;
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

using Counter = std::atomic_ref<std::uint64_t>;

void add(std::uint64_t& to, std::uint64_t value) {
  Counter(to).fetch_add(value, std::memory_order_relaxed);
}

void raise_to(std::uint64_t& to, std::uint64_t value) {
  std::uint64_t known = Counter(to).load(std::memory_order_relaxed);
  while (known < value &&
         !Counter(to).compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

void note() {
  if (!counted.load(std::memory_order_relaxed)) counted.store(true, std::memory_order_relaxed);
}

void count(std::uint64_t& to) {
  add(to, 1);
  note();
}

void count(FileCount& to, std::uint64_t bytes) {
  add(to.files, 1);
  add(to.bytes, bytes);
  note();
}

std::size_t class_of(std::uint64_t bytes) {
  std::size_t number = 0;
  while (number + 1 < write_classes && bytes >= write_limits[number]) ++number;
  return number;
}

}  // namespace

CountedWrite::CountedWrite(std::uint64_t bytes) : of_(class_of(bytes)) {
  const std::uint64_t before = Counter(all.writes[of_].writes).load(std::memory_order_relaxed);
  if (bytes >= always_timed_from || before % timed_one_in == 0) began_ns_ = now_ns();
}

ssize_t CountedWrite::done(ssize_t written) const {
  if (written < 0) return written;
  WriteCount& to = all.writes[of_];
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
  WaitCount& to = all.waits[static_cast<std::size_t>(what_)];
  add(to.calls, 1);
  add(to.ns, took_ns);
  raise_to(to.longest_ns, took_ns);
  note();
}

void count_direct(std::uint64_t bytes) { count(all.direct, bytes); }
void count_real(std::uint64_t bytes) { count(all.real, bytes); }
void count_locked() { count(all.locked); }
void count_native() { count(all.native); }

bool has_counts() { return counted.load(std::memory_order_relaxed); }

Counts take_counts() {
  Counts taken;
  counted.store(false, std::memory_order_relaxed);
  for (std::size_t word = 0; word < count_words; ++word)
    words_of(taken)[word] = Counter(words_of(all)[word]).exchange(0, std::memory_order_relaxed);
  return taken;
}

void give_back(Counts counts) {
  for (std::size_t word = 0; word < count_words; ++word) {
    std::uint64_t& to = words_of(all)[word];
    is_longest(word) ? raise_to(to, words_of(counts)[word]) : add(to, words_of(counts)[word]);
  }
  note();
}

void forget_counts() { (void)take_counts(); }

}  // namespace backstay::files
