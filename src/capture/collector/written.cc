#include "capture/collector/written.h"

#include <algorithm>
#include <utility>

namespace backstay::files {

namespace {

bool is_any(const Counts& counts) {
  const auto writes = [](const WriteCount& one) { return one.writes != 0; };
  const auto calls = [](const WaitCount& one) { return one.calls != 0; };
  return std::ranges::any_of(counts.writes, writes) || std::ranges::any_of(counts.waits, calls) ||
         counts.direct.files != 0 || counts.real.files != 0;
}

void add_to(FileCount& sum, const FileCount& more) {
  sum.files += more.files;
  sum.bytes += more.bytes;
}

// Those whose time was not taken took as long as the others.
std::uint64_t all_ns(const WriteCount& count) {
  if (count.timed == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(count.timed_ns) *
                                    static_cast<double>(count.writes) /
                                    static_cast<double>(count.timed));
}

}  // namespace

void Written::add(const Counts& counts) {
  if (!is_any(counts)) return;
  const std::lock_guard guard(mutex_);
  any_ = true;
  for (std::size_t number = 0; number < write_classes; ++number) {
    WriteCount& sum = counts_.writes[number];
    const WriteCount& more = counts.writes[number];
    sum.writes += more.writes;
    sum.bytes += more.bytes;
    sum.timed += more.timed;
    sum.timed_ns += more.timed_ns;
  }
  for (std::size_t number = 0; number < waited_kinds; ++number) {
    WaitCount& sum = counts_.waits[number];
    const WaitCount& more = counts.waits[number];
    sum.calls += more.calls;
    sum.ns += more.ns;
    sum.longest_ns = std::max(sum.longest_ns, more.longest_ns);
  }
  add_to(counts_.direct, counts.direct);
  add_to(counts_.real, counts.real);
}

void Written::add_captured(std::uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  any_ = true;
  add_to(captured_, {1, bytes});
}

bool Written::any() const {
  const std::lock_guard guard(mutex_);
  return any_;
}

wire::NoteWrites Written::take() {
  const std::lock_guard guard(mutex_);
  const Counts counts = std::exchange(counts_, {});
  const FileCount captured = std::exchange(captured_, {});
  any_ = false;
  wire::NoteWrites noted{captured.files,
                         captured.bytes,
                         counts.direct.files,
                         counts.direct.bytes,
                         counts.real.files,
                         counts.real.bytes,
                         {},
                         {}};
  for (std::size_t number = 0; number < write_classes; ++number) {
    const WriteCount& one = counts.writes[number];
    if (one.writes == 0) continue;
    const bool greatest = number + 1 == write_classes;
    noted.sizes.push_back(
        {greatest ? 0 : write_limits[number], one.writes, one.bytes, all_ns(one)});
  }
  for (std::size_t number = 0; number < waited_kinds; ++number) {
    const WaitCount& one = counts.waits[number];
    if (one.calls == 0) continue;
    noted.waits.push_back({waited_names[number], one.calls, one.ns, one.longest_ns});
  }
  return noted;
}

}  // namespace backstay::files
