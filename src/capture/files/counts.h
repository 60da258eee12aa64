// What a process writes into captured files: how much, in writes of which sizes, and how long its
// calls take. For `backstay report` (docs/guide/report.md); nothing depends on it.
//
// A write costs two additions. Its time is taken of each large one, and of one in sixteen small
// ones of a size, as reading the clock takes a tenth of the smallest. The counts travel with the
// next question to the collector.
//
// Any thread, and signal handlers; no system call, nothing allocated.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace backstay::files {

// The size classes of paper 003's profile. A write belongs to the first whose limit is above it.
inline constexpr std::array<std::uint64_t, 10> write_limits = {
    64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, UINT64_MAX};
inline constexpr std::size_t write_classes = write_limits.size();

enum class Waited : std::uint32_t { open, close, fsync, room };
inline constexpr std::array<const char*, 4> waited_names = {"open", "close", "fsync", "room"};
inline constexpr std::size_t waited_kinds = waited_names.size();

struct WriteCount {
  std::uint64_t writes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t timed = 0;  // of the writes; the others took as long, on average
  std::uint64_t timed_ns = 0;
  std::uint64_t apart[4] = {};  // threads that write in different sizes do not disturb each other
};
struct WaitCount {
  std::uint64_t calls = 0;
  std::uint64_t ns = 0;
  std::uint64_t longest_ns = 0;
};
struct FileCount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};
struct Counts {
  WriteCount writes[write_classes];
  WaitCount waits[waited_kinds];
  FileCount direct;          // brought to their places by the process itself, at their close
  FileCount real;            // made real, or brought to their places, while they were open
  std::uint64_t locked = 0;  // of those, as they were locked
  std::uint64_t native = 0;  // fit a pattern, and were opened to write in a way that no rule allows
};
inline constexpr std::size_t count_words = sizeof(Counts) / sizeof(std::uint64_t);
inline std::uint64_t* words_of(Counts& counts) { return reinterpret_cast<std::uint64_t*>(&counts); }
// Whether the longest counts of this word; else the sum does.
constexpr bool is_longest(std::size_t word) {
  constexpr std::size_t first = offsetof(Counts, waits) / sizeof(std::uint64_t);
  constexpr std::size_t each = sizeof(WaitCount) / sizeof(std::uint64_t);
  return word >= first && word < first + waited_kinds * each && (word - first) % each == each - 1;
}

// From its construction to done(): one write of so many bytes, as the program asks for it.
class CountedWrite {
 public:
  explicit CountedWrite(std::uint64_t bytes);
  // What the call returns; less than 0: it does not count.
  ssize_t done(ssize_t written) const;
  // Of calls that write nothing.
  int done(int result) const { return result; }

 private:
  std::size_t of_;
  std::uint64_t began_ns_ = 0;  // 0: its time is not taken
};

// A call's time, from its construction to its destruction.
class CountedWait {
 public:
  explicit CountedWait(Waited what);
  ~CountedWait();
  CountedWait(const CountedWait&) = delete;
  CountedWait& operator=(const CountedWait&) = delete;

 private:
  Waited what_;
  std::uint64_t began_ns_;
};

void count_direct(std::uint64_t bytes);
void count_real(std::uint64_t bytes);
void count_locked();
void count_native();

// What was counted and not taken yet.
bool has_counts();
Counts take_counts();
void give_back(Counts counts);
// In a child after fork: what the parent counted is the parent's.
void forget_counts();

}  // namespace backstay::files
