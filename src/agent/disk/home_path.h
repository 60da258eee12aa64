// Brings one captured file to its path, whole or not at all (docs/protocol/home.md numbers the
// steps; each is a failpoint), and knows which files at which paths are of its making.
//
// Blocks on the file system of the path. One thread at a time.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "agent/disk/home_orders.h"
#include "agent/disk/version_files.h"
#include "base/clock.h"
#include "io/file.h"

namespace backstay::agent {

// Of the same job and path always the same, in the same folder.
std::string temporary_name(const std::string& job, const std::string& path);

class HomePaths {
 public:
  // All must live longer.
  HomePaths(std::string job, io::FileSystem& files, const Clock& clock)
      : job_(std::move(job)), files_(files), clock_(clock), known_since_(now()) {}

  // The name is safe once the folder is synced. `stop`: asked between two chunks; true gives the
  // file up (failed, code again). After failed and kept the path has what it had, and there is no
  // temporary file unless it could not be removed.
  FileBrought bring(VersionFiles& version, const VersionFiles::Entry& entry,
                    const std::function<bool()>& stop);

 private:
  struct Mine {  // what stands at a path since it was brought
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    io::Moment changed;
    std::uint64_t placed_ns = 0;
  };
  io::Moment now() const;
  Result<Brought> compare(const format::CapturedFile& file);
  Status make(VersionFiles& version, const VersionFiles::Entry& entry, const std::string& temporary,
              const std::function<bool()>& stop);
  Status place(const format::CapturedFile& file, const std::string& temporary);
  void remember(const format::CapturedFile& file);

  const std::string job_;
  io::FileSystem& files_;
  const Clock& clock_;
  // Whatever was brought later is in mine_.
  io::Moment known_since_;
  std::map<std::string, Mine> mine_;  // by path
  std::deque<std::string> order_;     // of mine_, the oldest first
};

}  // namespace backstay::agent
