#include "capture/collector/written.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace backstay::files {

namespace {

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

void Written::add(Counts counts) {
  const std::lock_guard guard(mutex_);
  for (std::size_t word = 0; word < count_words; ++word) {
    const std::uint64_t more = words_of(counts)[word];
    any_ = any_ || (more != 0 && word + 2 < count_words);  // the last two are reasons
    for (Counts* of : {&counts_, &all_}) {
      std::uint64_t& sum = words_of(*of)[word];
      sum = is_longest(word) ? std::max(sum, more) : sum + more;
    }
  }
}

void Written::add_captured(std::uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  any_ = true;
  add_to(captured_, {1, bytes});
  add_to(all_captured_, {1, bytes});
}

Written::Fates Written::take_fates() {
  const std::lock_guard guard(mutex_);
  const Counts all = std::exchange(all_, {});
  const FileCount captured = std::exchange(all_captured_, {});
  if (captured.files > 0)
    return {captured.files, fmt::format("{} {} captured, {:.{}f} MB", captured.files,
                                        captured.files == 1 ? "file" : "files",
                                        static_cast<double>(captured.bytes) * 1e-6,
                                        captured.bytes < 100'000'000 ? 1 : 0)};
  const std::uint64_t locked = std::min(all.locked, all.real.files);
  const std::pair<std::uint64_t, const char*> reasons[] = {
      {locked,
       "locked while open, as HDF5 does (HDF5_USE_FILE_LOCKING=FALSE in the program's environment "
       "keeps it from that)"},
      {all.native,
       "opened to be changed in place, for appending, or by several processes, as MPI-IO does"},
      {all.real.files - locked, "mapped, or open while the program started another process"},
      {all.direct.files, "below 256 KiB, or brought home by the program itself"}};
  std::string words;
  for (const auto& [count, why] : reasons)
    if (count > 0) words += fmt::format("{}{} {}", words.empty() ? "" : "; ", count, why);
  return {0, words};
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
