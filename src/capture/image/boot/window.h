// Where the boot program lies, and its own memory: one fixed range that no image ever holds. Behind
// it lies the range of the lower half, of which none holds anything either.
//
// The address is odd on purpose. It is far from where kernels put programs (0x400000, 0x55..),
// stacks and libraries (0x7f.., and from 0x2aaa.. upwards where the stack is unlimited), from the
// ranges that AddressSanitizer takes, and above 0x3fff.., below which V8 (Node.js) asks for memory
// at random. The linker script's option in CMakeLists.txt says the same number.
#pragma once

#include "capture/image/boot/text.h"
#include "capture/lower/channel.h"
#include "capture/lower/table.h"

namespace backstay::image {

inline constexpr uint64_t window_start = 0x4a5e00000000;
inline constexpr uint64_t window_end = window_start + (1ULL << 40);
inline constexpr uint64_t arena_start = window_start + (1ULL << 32);
inline constexpr uint64_t arena_end = arena_start + (1ULL << 30);
// What is remembered of an image until the next one (kept.h).
inline constexpr uint64_t before_place = window_start + (6ULL << 30);
inline constexpr uint64_t trial_place = before_place + (1ULL << 30);
static_assert(arena_end <= before_place);
// The agent's pool, which the companion lends: the rest of the window.
inline constexpr uint64_t pool_start = window_start + (1ULL << 33);
// Below the arena: the program itself, then what a restart needs, and the channel.
inline constexpr uint64_t new_stacks_place = window_start + (2ULL << 30);
inline constexpr uint64_t vdso_place = window_start + (5ULL << 29);
inline constexpr uint64_t kept_environment_place = vdso_place + (1ULL << 28);
static_assert(kept_environment_place < lower::channel_place);
static_assert(lower::channel_place + lower::channel_bytes_max < arena_start);

static_assert(window_end == lower::range_start);
inline bool in_window(uint64_t start, uint64_t end) {
  return start >= window_start && end <= lower::range_end;
}

// Maps private memory of zeros at this address, of which only the pages that are used take room,
// also in a program that locks all of its memory (mlockall). 0, or the kernel's negative error.
long map_own(uint64_t start, uint64_t bytes);

// The memory of one cut or one restart: given out front to back, all given back at once. Only one
// thread uses it at a time: the boot's first, later its control thread.
namespace arena {
// 0, or the kernel's negative error: the program's memory may be limited.
long begin();
void* take(uint64_t bytes);  // aligned to 16, zeros; ends the process where the window is full
void end();                  // unmaps what was used
}  // namespace arena

// A row of records that grows in the arena. It must be the last one that grows: rows take room of
// their own, `room` records each.
template <typename T>
class Row {
 public:
  void begin(uint64_t room) {
    first_ = static_cast<T*>(arena::take(room * sizeof(T)));
    room_ = room;
    size_ = 0;
  }
  // Records that lie elsewhere.
  void adopt(T* first, uint64_t size) {
    first_ = first;
    room_ = size_ = size;
  }
  // Null where the row is full.
  T* add() { return size_ < room_ ? &first_[size_++] : nullptr; }
  T* begin() { return first_; }
  T* end() { return first_ + size_; }
  const T* begin() const { return first_; }
  const T* end() const { return first_ + size_; }
  T& operator[](uint64_t at) { return first_[at]; }
  const T& operator[](uint64_t at) const { return first_[at]; }
  uint64_t size() const { return size_; }
  uint64_t room() const { return room_; }
  void resize(uint64_t size) { size_ = size; }

 private:
  T* first_ = nullptr;
  uint64_t room_ = 0;
  uint64_t size_ = 0;
};

// The first record of a sorted row for which is_before(record) is false; the row's end where there
// is none.
template <typename T, typename IsBefore>
const T* find_first(const Row<T>& row, IsBefore is_before) {
  uint64_t first = 0;
  uint64_t end = row.size();
  while (first < end) {
    const uint64_t middle = first + (end - first) / 2;
    if (is_before(row[middle])) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return row.begin() + first;
}
template <typename T, typename IsBefore>
T* find_first(Row<T>& row, IsBefore is_before) {
  return const_cast<T*>(find_first(static_cast<const Row<T>&>(row), is_before));
}

}  // namespace backstay::image
