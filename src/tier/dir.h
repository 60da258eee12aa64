// A tier in a directory: one file a name, folders for the parts before it.
//
//  put     tmp file written and synced, renamed, folder synced. Every folder above it, up to the
//          root of the file system, is synced the first time, and again once the folder was
//          removed.
//  create  O_DIRECT where possible, blocks reserved in advance.
//  remove  "commit.*" of a folder first and the folder synced, then the rest, then the folder
//          above.
//
// Recycling. Overwriting blocks that a file has is faster than giving it new ones, so instead of
// unlinking a large file the tier may keep it in "<root>/.spare" and rename it to the next name
// that is created with about its size. Why this cannot make old bytes valid:
//  1. A file becomes a spare only after its folder's commit records are gone, and is used only
//     after its old name is safely gone (folder above and .spare synced): never two names for one
//     file, not even after a crash.
//  2. The new name is not committed before seal() has returned; until then its folder has no commit
//     record and is garbage.
//  3. Below the sealed size every byte that counts has been written; each is checked against the
//     checksum in the manifest, which belongs to the new version. Old bytes pass only if they are
//     the same bytes.
//  4. Spares of earlier processes are deleted when the tier is opened with recycling, never used.
//  5. Only files that this tier created become spares: another tier on the same directory (the
//     copies that an agent keeps for others) may still be writing its own when the folder is
//     removed.
// Spares are deleted when the disk is full. A file that a Reader of this process has open is
// unlinked, not kept (DirOptions::readers). A reader in another process may see bytes change once
// the version was removed: its checksums show it, and the commit record is gone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/config.h"
#include "io/file.h"
#include "io/ring.h"
#include "tier/open_readers.h"
#include "tier/safe_folders.h"
#include "tier/tier.h"

namespace backstay::tier {

using MakeRing = std::function<Result<std::unique_ptr<io::Ring>>()>;

struct DirOptions {
  std::string root;      // made at the first write, mode 0700
  bool recycle = false;  // for the one process that writes here (the agent)
  // A word of this tier alone, part of its temporary names, for storage on which others may create
  // the same names at the same time. A created name then exists from seal() on, whole, and the file
  // before it until then. Not with recycle.
  std::string writer = {};
  // The folder of the spares, relative to the root. Processes that recycle below one root at the
  // same time (agents that serve different jobs) each need their own: the first thing a tier does
  // is to delete what lies there.
  std::string spare_folder = ".spare";
  // Files kept for the next create(). One is enough if one name is written at a time.
  unsigned spares_max = 1;
  std::uint64_t spare_bytes_min = 1 << 20;  // smaller files are not worth it
  // The same object for all tiers of this process on this folder if any of them recycles. Empty:
  // this tier knows its own readers only.
  std::shared_ptr<OpenReaders> readers = {};
  // The same object for all tiers of this process on this folder. Empty: this tier does not learn
  // which folders the others remove.
  std::shared_ptr<SafeFolders> folders = {};
  // Called with each create(): whether the file is written around the page cache. May be empty.
  std::function<void(bool direct)> tell_direct = {};
};

// `fs` must live as long as the tier and all its readers and writers. A ring is made for each
// Reader and Writer that lives at the same time and used again after it, unless it is a stopgap.
// prepare() makes the first one, so that the first create() does not pay for it. Errors: invalid
// (no root).
Result<std::unique_ptr<Tier>> open_dir_tier(io::FileSystem& fs, MakeRing make_ring,
                                            DirOptions options);

// The machine's files, as writer.direct asks. Never destroyed.
io::FileSystem& files_of(const Config::Writer& writer);
// The tier on these, with the rings that [writer] asks for.
Result<std::unique_ptr<Tier>> open_dir_tier(const Config::Writer& writer, DirOptions options);

}  // namespace backstay::tier
