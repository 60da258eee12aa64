// A file system in memory that can lose what a machine loses, and a Ring on it.
//
// Fault model of crash(seed). What a machine keeps when it stops is everything that was synced and,
// of the rest, any part:
//  - content: of a file, each block written since its last sync() has its new or its old bytes. A
//    block is 512 or 4096 bytes, by the seed. Never written blocks below the size are zeros.
//  - size: the last synced one, the newest, or, if it grew, something between. So a file may keep
//    its size and lose its bytes.
//  - names: each creation, rename and removal in a folder since its last sync_directory() has
//    happened or not, each for itself: a later one may survive an earlier one. A rename inside one
//    folder is one event; a rename between two folders is two, so that the file may have both names
//    or none. A rename may survive although the file's content did not.
//  - mode and times: those of the last sync() or the newest.
//  - open files are dead: every call on them fails with Code::io.
// Not in the model: bytes that turn bad after they were synced (faulty.h flips them), a block with
// an older value than the last two, folders renamed into another folder (refused with EXDEV).
//
// The same seed on the same history gives the same loss. Any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "io/file.h"
#include "io/ring.h"

namespace backstay::io {

struct MemoryOptions {
  std::uint64_t capacity_bytes = std::numeric_limits<std::uint64_t>::max();  // full: no_space
  bool direct = true;  // the *_direct ways of opening check alignment, as O_DIRECT does
  // Gives files their times; null: they are those of 1970 until set_attributes().
  const Clock* clock = nullptr;
};

class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(MemoryOptions options = {});
  ~MemoryFileSystem() override;

  // The root folder "/" exists; relative paths begin there.
  Result<std::unique_ptr<File>> open(const std::string& path, Open how) override;
  Status make_directories(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<Facts> look(const std::string& path) override;
  Result<std::vector<Entry>> list(const std::string& path) override;
  Status sync_directory(const std::string& path) override;

  // The disk fills up, or has room again. Existing content stays, even if it is larger.
  void set_capacity(std::uint64_t bytes);
  // The machine stops and starts again.
  void crash(std::uint64_t seed);
  // Bytes of all files that have a name or are open.
  std::uint64_t used_bytes() const;

  struct State;  // memory.cc

 private:
  const std::shared_ptr<State> state_;  // open files hold it too
};

struct MemoryRingOptions {
  unsigned depth = 8;
  std::uint64_t seed = 0;
  // One in about this many requests fails with EIO, a write half done; 0: none.
  unsigned fail_one_in = 0;
};

// Works on the files of any FileSystem. A request is carried out when it is reaped, not when it is
// submitted, in an order chosen by the seed: a caller that syncs before reaping loses data in a
// crash. reap(false) returns none, some or all.
std::unique_ptr<Ring> make_memory_ring(MemoryRingOptions options = {});

}  // namespace backstay::io
