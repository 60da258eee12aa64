// The memory files of this process: which descriptor leads to which opening of which file.
//
// An *opening* is what the kernel calls an open file description: it has an offset, and descriptors
// made by dup share it. Each has a real descriptor beside it, which the program does not see: the
// same file at its place, opened with the same flags, ready to take over. Several openings may lead
// to one memory file.
//
// Pure: no system call, nothing allocated. The owner holds the lock (lock.h) for all but find,
// is_ours and empty, which any thread and any signal handler may ask.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>

namespace backstay::files {

inline constexpr int descriptors_max = 1 << 16;  // greater numbers are never captured
inline constexpr int openings_max = 4096;

struct MemoryFile {
  int memory;          // the memory file itself, for reading and writing; ours
  int target;          // the file at its place, for writing; ours
  struct stat placed;  // of the file at its place, when it was opened
  struct stat memory_stat;
  int openings;  // 0: this entry is free
  // Of the last fsync: the version that has the bytes (0: none), and the hold that keeps it from
  // coming to the file's place (docs/protocol/collector.md); -1: there is none; ours
  std::uint64_t synced;
  int hold;
};

struct Opening {
  MemoryFile* file;  // null: this entry is free
  int real;
  int flags;
  int descriptors;
  std::FILE* stream;  // one that writes through it; null if none is known
};

// What ended with a descriptor.
struct Ended {
  Opening* opening = nullptr;  // set: its last descriptor; free it with remove
  MemoryFile* file = nullptr;  // set: the last opening of this file
};

class Table {
 public:
  bool empty() const { return files_.load(std::memory_order_relaxed) == 0; }
  // Null: not a descriptor of a memory file.
  Opening* find(int fd);
  // Descriptors that only we may close.
  bool is_ours(int fd) const;
  void set_ours(int fd, bool ours);

  // The memory file whose place, or whose memory, has this device and inode; null if none.
  MemoryFile* at_inode(dev_t device, ino_t inode);
  // Null: no room.
  MemoryFile* add_file();
  Opening* add_opening(MemoryFile& file, int real, int flags);
  // Precondition: 0 <= fd < descriptors_max, and it leads to no opening.
  void bind(int fd, Opening& opening);
  // What would end if this descriptor were closed.
  Ended end(int fd);
  void unbind(int fd);
  // Takes an opening without descriptors out, and its file with the last opening.
  void remove(Opening& opening);
  // Forgets everything, as a child does that shares nothing with its parent's files.
  void clear();

  // Any memory file; null if there is none.
  MemoryFile* first_file();
  // The one after it; null if there is none.
  MemoryFile* next_file(const MemoryFile& file);
  // An opening of this file, the one after `previous` where that is given; null if none.
  Opening* next_opening(const MemoryFile& file, const Opening* previous = nullptr);
  // The smallest descriptor of this opening from `fd` on; -1 if none.
  int next_descriptor(const Opening& opening, int fd) const;

 private:
  std::uint16_t number_of(const Opening& opening) const;

  std::array<std::atomic<std::uint16_t>, descriptors_max> descriptors_ = {};  // opening + 1
  std::array<std::atomic<std::uint64_t>, descriptors_max / 64> ours_ = {};
  std::array<Opening, openings_max> all_openings_ = {};
  std::array<MemoryFile, openings_max> all_files_ = {};
  std::atomic<int> files_ = 0;
  std::atomic<int> descriptors_end_ = 0;  // no descriptor from here on is bound
  std::atomic<int> files_end_ = 0;        // no entry from here on has been used
};

}  // namespace backstay::files
