// The placing note: for which captured files a home thread has made temporary files, and which of
// these it was about to rename to their paths, since this machine was started
// (docs/protocol/home.md, "An agent that was killed").
//
// An agent that is killed between a file's rename and its version's mark leaves a file that its
// program may rename or remove before the next agent looks. That agent knows that the rename was
// done if the note says that the file was about to be renamed, and there is no temporary file. That
// one was made proves nothing but where it may lie: it may be gone with its folder.
//
// The note is never synced: it must outlive the agent, not the machine, and belongs to one boot. If
// it cannot be written, files are brought once more, as if it did not exist. One thread; blocks on
// the file system.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/ids.h"
#include "io/file.h"

namespace backstay::store {

class PlacingNote {
 public:
  struct File {
    RunId run = 0;
    VersionNumber version = 0;
    std::string path;  // in the version's table
    friend auto operator<=>(const File&, const File&) = default;
  };
  struct Place {
    std::string to;  // the path to which it was renamed
    std::uint64_t placed_ns = 0;
    bool made_only = false;  // there is a temporary file; it was not about to be renamed
  };

  // `path`: of the note's file; `boot`: of this start of the machine. No note where one is empty.
  // `files` must live longer.
  PlacingNote(io::FileSystem& files, std::string path, std::string boot)
      : files_(files), path_(std::move(path)), boot_(std::move(boot)) {}

  // Null: nothing is noted.
  const Place* find(const File& file);
  // Once there is a temporary file.
  void made(const File& file, const Place& place);
  // Just before its rename.
  void add(const File& file, const Place& place);
  // Nothing was renamed to `to`. Only if this succeeds may its temporary file be removed: without
  // both, the next agent would take what is noted, by an agent before this one too, for a file that
  // is at its path. Errors: of the file system.
  Status take_back(const std::string& to);
  // A disk has one version of a number at a time: where an older run's of this number is noted,
  // too, that is gone, and the next two calls mean it as well. The folder of one of the version's
  // files could not be synced: all are brought once more.
  void take_back(VersionNumber version);
  // The version's mark is written.
  void marked(VersionNumber version);

 private:
  void begin();
  std::size_t forget(VersionNumber version);
  Status read();
  Status rewrite();
  Status take_back(const File& file);
  void note(const File& file, const Place& place);
  Status append(const char* done, const File& file, const Place& place);

  io::FileSystem& files_;
  const std::string path_;
  const std::string boot_;
  bool began_ = false;
  std::map<File, Place> noted_;     // of versions without a mark
  std::unique_ptr<io::File> file_;  // null: nothing can be noted
  std::uint64_t bytes_ = 0;         // of the file
  std::uint64_t rewrite_at_ = 0;    // size at which lines of versions with marks are left out
};

}  // namespace backstay::store
