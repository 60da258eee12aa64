// A file that a program has finished and that is not at its place yet.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "capture/files/collect.h"

namespace backstay::files {

struct PendingFile {
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  // `question` has come with both descriptors. Errors: unsupported (a rename would be wrong; it
  // must go to its place by another way), io.
  static Result<PendingFile> of(const Question& question, Fd memory, Fd target);

  Key key() const { return {placed.st_dev, placed.st_ino}; }
  // The program's side says no to these only once the file is listed, as another process might open
  // it in between. Fills in path and placed_ns. Errors: unsupported.
  Status may_be_replaced();
  // Brings it to its place without the agent. Errors: errno's.
  Status place();
  // Its name is gone, and no other file has it: the bytes are not wanted.
  bool is_removed() const;

  Fd memory;                // the bytes; invalid once the agent's disk has them and memory is short
  Fd target;                // the placeholder; held open, so that no other file gets its inode
  struct stat opened = {};  // size and time of change, when the program opened it
  struct stat placed = {};  // when it came here
  std::uint64_t bytes = 0;
  std::string path;
  std::uint64_t placed_ns = 0;

  // --- what the collector notes (guarded by its lock)
  RunId run = 0;              // of the agent's job that has the bytes
  VersionNumber version = 0;  // in which they are
  bool local = false;
  bool busy = true;   // a thread works on it
  bool gone = false;  // it is at its place, or was not taken at all
  std::string why;    // it could not be brought
  unsigned tries = 0;
  std::uint64_t next_ns = 0;  // not before
};

}  // namespace backstay::files
