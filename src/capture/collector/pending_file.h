// A file that a program has finished and that is not at its place yet.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hold.h"
#include "base/ids.h"
#include "base/result.h"
#include "capture/files/collect.h"

namespace backstay::files {

// The collector cannot do it: the library goes its own way.
inline Error not_here(const char* why) { return {Code::unsupported, why}; }

inline std::uint64_t nanoseconds(const struct timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Whether this file stands at the path, not one that a link there leads to.
bool stands_at(const std::string& path, const struct stat& file);

struct PendingFile {
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  // `question` has come with both descriptors. Errors: unsupported (a rename would be wrong; it
  // must go to its place by another way), io.
  static Result<PendingFile> of(const Question& question, Fd memory, Fd target);

  Key key() const { return {placed.st_dev, placed.st_ino}; }
  // The program's side says no to these only once the file is listed, as another process might open
  // it in between. Fills in path and placed_ns. Errors: unsupported.
  Status may_be_replaced();
  // The agent would take what stands there for another program's newer file. `placed_at_ns`:
  // when this one came there.
  bool is_older_than(const struct stat& there, std::uint64_t placed_at_ns) const;
  // A whole copy in the folder of `to`, under a name that it tells. Errors: errno's.
  Result<Fd> copy_beside(const std::string& to, std::string& name) const;
  // Brings it to its place without the agent. Errors: errno's.
  Status place();
  // Its name is gone, and no other file has it: the bytes are not wanted.
  bool is_removed() const;
  // Its placeholder stands under its name.
  bool stands() const { return stands_at(path, placed); }
  // Its placeholder has no name any more: an agent has brought the file, or the program has removed
  // the placeholder or put another file in its place.
  bool has_left() const;
  // Its placeholder stands under its name, and has the bytes that it had when the program opened
  // it, or after our last try to write it: others have changed no more than its mode, owner or
  // names.
  bool is_untouched() const;
  // Its mode, but for one that others have given the placeholder since the file came here.
  std::uint32_t mode_to_have() const;
  // When the placeholder's inode was changed last.
  std::uint64_t changed_ns() const;
  // Another file stands under its name.
  bool is_replaced() const;
  // And the agent would leave it there.
  bool is_replaced_by_newer() const;
  // The name under which its placeholder stands now; "": under none.
  std::string name_now() const;
  // Nothing was written since `before` was synced, and the file at its place is as it was.
  bool is_as_synced(const PendingFile& before) const;
  // Its placeholder goes, where it still stands at the path.
  void remove_placeholder() const;

  Fd memory;  // the bytes; invalid once the agent's disk has them and memory is short
  Fd target;  // the placeholder; held open, so that no other file gets its inode
  // Of the placeholder: size and time of change when the program opened it, or after our last try
  // to write it.
  struct stat opened = {};
  struct stat placed = {};  // when it came here
  std::uint64_t bytes = 0;
  struct timespec modified = {};
  std::string path;
  std::uint64_t placed_ns = 0;
  std::uint32_t mode = 0;  // of the file; the placeholder may have another one

  // Waits for an agent only, or for nothing.
  bool may_move() const { return !gone && !moving && (!busy || settling); }

  // --- synced: its program has it open, and `version` is not to come home
  Fd hold;                  // has the lock of the hold
  Fd process;               // of the program; readable once that has ended
  struct stat synced = {};  // of the memory file, before its bytes were read
  // Versions with the same hold that were handed in before, to agents that died: they may be on the
  // disk all the same.
  std::vector<HeldVersion> former;

  // A version that has this file, or one that it has replaced, under a path at which that is not to
  // stand any more: an agent that was not told of the rename would bring it there.
  struct Elsewhere {
    HeldVersion version = {};
    std::string path;  // in the version's table
    std::uint64_t bytes = 0;
    struct timespec modified = {};
    RunId told = 0;  // the last run of an agent that knows that it is not to be brought
    // A file with the same size and time of change is at the path.
    bool stands() const;
  };
  Elsewhere elsewhere_of() const { return {of_run(), named, bytes, modified, run}; }

  // --- what the collector notes (guarded by its lock)
  HeldVersion of_run() const { return {version, run}; }
  RunId run = 0;              // of the agent's job that has the bytes
  VersionNumber version = 0;  // in which they are
  std::string named;          // the path that this version's table has for it
  std::vector<Elsewhere> elsewhere;
  bool local = false;
  bool busy = true;       // a thread works on it
  bool settling = false;  // that one only waits for the agent
  bool moving = false;    // it gets another name
  bool whole = false;     // its placeholder is a whole copy, which will be synced where it stands
  unsigned shows = 0;     // how often one was begun
  bool gone = false;      // it is at its place, or was not taken at all
  std::string why;        // it could not be brought
  std::string why_kept;   // why the agent leaves it in its store for good
  bool changed_here = false;  // its placeholder, by our own try; the agent does not know it yet
  unsigned tries = 0;
  std::uint64_t next_ns = 0;  // not before
};

}  // namespace backstay::files
