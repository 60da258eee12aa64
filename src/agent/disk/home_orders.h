// What the home plan asks of the home thread, and what that answers (docs/protocol/home.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/commit.h"
#include "format/home_mark.h"
#include "store/home/home_path.h"

namespace backstay::agent {

// --- orders --------------------------------------------------------------------------------------
struct LookAtFiles {  // answered by FilesLookedAt
  format::CommitRecord record;
  NodeId node = 0;
  bool before = false;  // it was there before this agent began: another one may have left files
};
// Of a version that was looked at; answered by FileBrought.
struct BringFile {
  VersionNumber version = 0;
  std::string path;             // in the version's table
  std::string to;               // where it comes
  std::uint64_t placed_ns = 0;  // of that path
};
// Syncs the folders of the files that were brought, then writes the mark; answered by HomeMarked.
struct MarkHome {
  VersionNumber version = 0;
  std::vector<format::FileNotHome> files;  // sorted by path
};
using HomeOrder = std::variant<LookAtFiles, BringFile, MarkHome>;
// What the thread has at a time: several of one kind, of different versions or paths, whose syncs
// it asks for together. Each is answered by itself, in their order.
using HomeOrders = std::vector<HomeOrder>;

// --- answers -------------------------------------------------------------------------------------
struct FileInVersion {
  std::string path;
  std::uint64_t placed_ns = 0;  // when it came to this path
  std::uint64_t bytes = 0;
  // The path to which an agent before this one has brought it, and when it came to that path; "":
  // as far as is known, none has.
  std::string stands_at = {};
  std::uint64_t stands_ns = 0;
};
struct FilesFound {
  // Each path once: of several objects the record that counts. In the order in which they came to
  // their paths.
  std::vector<FileInVersion> files;
  bool marked = false;
  std::vector<format::FileNotHome> not_home;  // as the mark says
};
struct FilesLookedAt {
  VersionNumber version = 0;
  Result<FilesFound> found;
};
struct HomeMarked {
  VersionNumber version = 0;
  Status status;
  // Folders that could not be synced, and why. The mark was not written then.
  std::map<std::string, Error> unsynced = {};
};
using store::Brought;
using store::FileBrought;
using HomeAnswer = std::variant<FilesLookedAt, FileBrought, HomeMarked>;

}  // namespace backstay::agent
