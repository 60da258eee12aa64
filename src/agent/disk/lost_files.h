// Brings home the captured files of hosts that are lost, out of the durable directory
// (docs/protocol/home.md#files-of-a-lost-host).
//
// The caller holds the locks of these hosts' files jobs. Blocks on the durable directory and on the
// file systems of the paths. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/disk/home_path.h"
#include "agent/disk/version_files.h"
#include "base/clock.h"
#include "format/home_mark.h"
#include "io/file.h"
#include "io/posix.h"
#include "tier/tier.h"

namespace backstay::agent {

struct LostFilesWorld {
  std::string name;  // for temporary names: other ones than those of the lost hosts' agents
  tier::Tier* durable = nullptr;
  io::FileSystem* files = &io::posix_filesystem();  // of the paths
  const Clock* clock = &system_clock();
  // Ok where this folder is the same one on the lost host; else why not.
  std::function<Status(const std::string& folder)> same_folder;
};

class LostFiles {
 public:
  struct File {
    std::string job;
    VersionNumber version = 0;
    std::string path;      // empty: all of the version
    std::string why = {};  // of one that is left
  };
  struct Outcome {
    std::vector<File> brought;
    std::vector<File> left;  // not brought now: each is told once, or again until it is home
  };

  explicit LostFiles(LostFilesWorld world);

  // The versions of this files job. What cannot be read is left.
  void add(const std::string& job);
  // Once: all that was added, and the marks of these versions.
  Outcome bring();

 private:
  struct Version {
    format::CommitRecord record;
    std::vector<format::FileNotHome> not_home = {};  // of the next mark
    bool pending = false;                            // it has a file that is not at home
  };
  // Of one path in one version.
  struct Record {
    std::size_t version = 0;  // in versions_
    VersionFiles::Entry entry;
    bool pending = false;
    FileBrought came = {};
  };
  void add_version(const format::CommitRecord& record);
  void add_record(Record record);
  Result<VersionFiles*> open(std::size_t version);
  void bring(Record& record);
  FileBrought brought(const Record& record);
  Result<bool> stands_there(VersionFiles& version, const VersionFiles::Entry& entry);
  void sync_folders();
  void note(const Record& record);
  void mark();

  const LostFilesWorld world_;
  HomePaths paths_;
  std::vector<Version> versions_;
  std::vector<Record> records_;
  std::map<std::string, std::size_t> newest_;  // by path, in records_
  std::unique_ptr<VersionFiles> files_;        // of opened_
  std::size_t opened_ = 0;
  Outcome outcome_;
};

}  // namespace backstay::agent
