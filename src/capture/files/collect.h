// What the library and the collector say to each other (docs/protocol/collector.md): plain memory,
// as both are of one build, and a page that both map.
//
// A process asks one question on each connection (SOCK_SEQPACKET), in one packet, and reads answers
// until one is the last. While the collector works it says so every second.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/files/counts.h"

namespace backstay::files {

inline constexpr std::uint32_t collect_magic = 0x43534b06;  // the last byte counts the formats

enum class Ask : std::uint32_t {
  keep = 1,        // take this file; with two descriptors: the memory file, the file at its place
  settle = 2,      // bring the pending file with this device and inode home
  settle_all = 3,  // all that are pending now
  watch = 4,       // this process may have files later
  rename = 5,      // give the pending file with this device and inode another name in its folder
  sync = 6,    // make local what this file has so far; as keep, with a third descriptor: its hold
  let_go = 7,  // the version of a sync is not to be brought to its place
  note = 8,    // it carries counts, as every question does; with talks: it asks for what became of
               // all files since it was asked so before
};

inline constexpr int handed_max = 3;  // descriptors of a question
constexpr int handed_with(Ask ask) { return ask == Ask::keep ? 2 : ask == Ask::sync ? 3 : 0; }

// How far a file that is kept has to be before the answer.
enum class Until : std::uint32_t { captured = 0, local = 1 };

inline constexpr std::size_t name_max = 255;

struct Question {
  std::uint32_t magic = collect_magic;
  Ask ask = Ask::watch;
  Until until = Until::captured;
  std::uint32_t talks = 0;  // 1: it wants words (of settle_all), to show them to people
  std::uint32_t last = 0;   // 1: of note: the first process of a tree ends
  std::uint32_t reads = 0;  // 1: of settle: it only looks, so a whole copy at the place will do
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  // Of keep: the file at its place when it was opened. What differs now was changed by others.
  std::int64_t opened_bytes = 0;
  std::int64_t opened_s = 0;
  std::int64_t opened_ns = 0;
  std::uint64_t version = 0;  // of keep, let_go: of the last sync; 0: there was none
  // Of rename.
  std::uint64_t folder_device = 0;
  std::uint64_t folder_inode = 0;
  char name[name_max + 1] = {};
  Counts counts;  // since the question before; the asking side fills them in when it sends
};

enum class Said : std::uint32_t {
  works = 1,  // it still does
  words = 2,  // a line for people
  done = 3,   // the last answer
};

inline constexpr std::size_t words_max = 5000;

struct Answer {
  Said said = Said::works;
  std::int32_t error = 0;  // of done: an error number, 0 for success
  std::uint32_t bytes = 0;
  std::uint64_t version = 0;  // of sync: that has the bytes; of note: the number of files captured
  char words[words_max] = {};
};
inline constexpr std::size_t answer_bytes_min = offsetof(Answer, words);

// A collector that says nothing for so long is taken for gone.
inline constexpr int silence_ms_max = 10'000;
inline constexpr int works_every_ms = 1'000;

// --- the pending page: a file beside the socket
// Written by the collector alone.
struct PendingSlot {
  std::atomic<std::uint64_t> inode;  // 0: free
  std::atomic<std::uint64_t> device;
  std::atomic<std::uint64_t> whole;  // 1: who only reads need not ask
};
inline constexpr std::uint32_t pending_max = 2000;
struct PendingPage {
  std::atomic<std::uint32_t> ended;  // 1: its collector has ended, nothing is pending; map it again
  std::atomic<std::uint32_t> count;  // of files that are pending
  std::atomic<std::uint32_t> used;   // no slot from here on has been used
  PendingSlot slots[pending_max];
};

// The name of the page beside that of the socket.
inline constexpr char page_suffix[] = ".pending";

// `reads`: of a call that only looks, for which one that is whole does not count.
inline bool is_listed(const PendingPage& page, std::uint64_t device, std::uint64_t inode,
                      bool reads = false) {
  if (page.count.load() == 0) return false;
  const std::uint32_t used = page.used.load();
  for (std::uint32_t number = 0; number < used && number < pending_max; ++number) {
    const PendingSlot& slot = page.slots[number];
    if (slot.inode.load() != inode || slot.device.load() != device) continue;
    return !reads || slot.whole.load() == 0;
  }
  return false;
}

}  // namespace backstay::files
