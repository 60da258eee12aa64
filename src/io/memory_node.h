// One file or folder of a MemoryFileSystem: what it holds now, and what a crash may take back.
// Guarded by the file system's lock.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "io/file.h"

namespace backstay::io {

inline constexpr std::size_t memory_block_bytes = 512;

struct MemoryNode;
using NodePointer = std::shared_ptr<MemoryNode>;

// The choices of one crash.
class CrashDice {
 public:
  explicit CrashDice(std::uint64_t seed) : random_(seed) { large_blocks_ = below(2) == 1; }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool large_blocks() const { return large_blocks_; }

 private:
  std::mt19937_64 random_;
  bool large_blocks_ = false;
};

struct MemoryNode {
  explicit MemoryNode(bool is_directory) : directory(is_directory) {}
  const bool directory;

  // A file.
  Buffer content;
  std::uint64_t synced_size = 0;
  std::map<std::uint64_t, std::array<std::byte, memory_block_bytes>>
      synced_blocks;         // where changed
  std::uint64_t number = 0;  // as of an inode
  Attributes attributes;
  Attributes synced_attributes;
  Moment changed;
  unsigned links = 0;
  unsigned opens = 0;

  // A folder. A change sets names, or removes them (null); it happens as a whole or not at all.
  using Change = std::vector<std::pair<std::string, NodePointer>>;
  std::map<std::string, NodePointer> names;
  std::map<std::string, NodePointer> synced_names;
  std::vector<Change> changes;

  // Notes the synced bytes of [begin, end) before they change.
  void before_change(std::uint64_t begin, std::uint64_t end);
  void resize(std::uint64_t bytes);
  void write(std::uint64_t offset, Bytes from);
  void apply(const Change& change);
  void sync();
  void crash_file(CrashDice& dice);
  void crash_directory(CrashDice& dice);
};

}  // namespace backstay::io
