// The spare files of a directory tier (dir.h says why and why it is safe). Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "io/file.h"
#include "tier/open_readers.h"

namespace backstay::tier {

struct Spare {
  std::string path;
  std::uint64_t bytes = 0;
};

class Spares {
 public:
  struct Limits {
    bool on = false;
    unsigned count_max = 1;
    std::uint64_t bytes_min = 1 << 20;
  };
  Spares(io::FileSystem& fs, std::string folder, Limits limits,
         std::shared_ptr<const OpenReaders> readers);

  // Deletes what an earlier process left.
  void forget_earlier();
  // False if spares lie in `path` or below it: then no file that is removed there may be kept.
  bool outside(const std::string& path) const { return !folder_.starts_with(path + "/"); }
  // Instead of unlinking `path`: moves it away and appends it to `kept`, if it is large enough and
  // has no reader. False: it is still there.
  bool keep(const std::string& path, std::vector<Spare>* kept);
  // After the folders that had the kept names were synced: they may be used.
  void publish(const std::vector<Spare>& kept);
  // If syncing failed: deletes them.
  void discard(const std::vector<Spare>& kept);
  // Renames a spare of about `bytes` to `path`, whose folder exists. False: there is none.
  bool use(const std::string& path, std::uint64_t bytes);
  // Deletes all; false if there were none.
  bool drop();

  // Only files that were created here become spares: another tier of this folder may still be
  // writing a file that it created.
  void created(const std::string& path);
  void removed(const std::string& path);

 private:
  bool is_ours(const std::string& path);
  std::uint64_t size_of(const std::string& path);
  bool reserve(Spare* spare);
  bool claim(std::uint64_t bytes, Spare* spare);

  io::FileSystem& fs_;
  const std::string folder_;
  const Limits limits_;
  const std::shared_ptr<const OpenReaders> readers_;
  std::mutex mutex_;  // guards all below; not held across I/O
  std::uint64_t next_ = 0;
  std::size_t unpublished_ = 0;  // kept, neither published nor discarded
  std::vector<Spare> ready_;     // newest last
  std::set<std::string> created_;
};

}  // namespace backstay::tier
