// Brings one captured file to its path, whole or not at all (docs/protocol/home.md numbers the
// steps; each is a failpoint), and knows which files at which paths are of its making.
//
// Blocks on the file system of the path. One thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "io/file.h"
#include "store/home/version_files.h"

namespace backstay::store {

enum class Brought {
  home,       // it stands under its name; its folder is not synced yet
  overtaken,  // a newer captured file of this path was brought before
  kept,       // another program's file at its path is newer; of a lost host also: nothing is there
  held,       // a program that has synced it has it open
  failed,
};
struct FileBrought {
  VersionNumber version = 0;
  std::string path;  // to which it came, or should have
  Brought how = Brought::home;
  std::string why = {};  // of kept and failed
  Code code = Code::ok;  // of failed
};
// Of the same job and path always the same, in the same folder.
std::string temporary_name(const std::string& job, const std::string& path);

// On its way: its bytes are in a temporary file beside its path, or it does not come there.
struct HomeFile {
  format::CapturedFile file;
  std::string temporary = {};
  Brought how = Brought::home;  // as far as is known
  Status status = {};
  std::unique_ptr<io::File> written = {};  // closed once it is synced
  bool placed = false;                     // at its path
  bool temporary_stays = false;            // the placing note still names it

  bool comes() const { return how == Brought::home && status.ok(); }
  void sync();  // any thread
};

class HomePaths {
 public:
  // All must live longer.
  HomePaths(std::string job, io::FileSystem& files, const Clock& clock)
      : job_(std::move(job)), files_(files), clock_(clock), known_since_(now()) {}

  // Writes the file beside its path. `stop`: asked between two chunks; true gives the file up
  // (failed, code again). `made`: called once there is a temporary file.
  HomeFile begin(
      VersionFiles& version, const VersionFiles::Entry& entry, const std::function<bool()>& stop,
      const std::function<void()>& made = [] {});
  // Of one that is synced, or does not come: it is at its path, whose name is safe once the folder
  // is synced. After failed and kept the path has what it had, and there is no temporary file
  // unless it could not be removed.
  FileBrought end(HomeFile& file) {
    look_again(file);
    place(file);
    return finish(file);
  }
  // The same in three steps.
  void look_again(HomeFile& file);
  void place(HomeFile& file);
  FileBrought finish(HomeFile& file);

 private:
  struct Mine {  // what stands at a path since it was brought
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    io::Moment changed;
    std::uint64_t placed_ns = 0;
  };
  io::Moment now() const;
  Result<Brought> compare(const format::CapturedFile& file);
  void look(HomeFile& file);
  Status make(VersionFiles& version, const VersionFiles::Entry& entry, HomeFile& begun,
              const std::function<bool()>& stop, const std::function<void()>& made);
  void remember(const format::CapturedFile& file);

  const std::string job_;
  io::FileSystem& files_;
  const Clock& clock_;
  // Whatever was brought later is in mine_.
  io::Moment known_since_;
  std::map<std::string, Mine> mine_;  // by path
  std::deque<std::string> order_;     // of mine_, the oldest first
};

}  // namespace backstay::store
