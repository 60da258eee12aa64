// Brings home the captured files of hosts that are lost, out of the durable directory or out of a
// storage folder with copies of them (docs/protocol/home.md#files-of-a-lost-host, #after-the-loss).
//
// The caller holds the locks of these hosts' files jobs there: `lock`, and `live` in a durable
// directory. Blocks on that folder and on the file systems of the paths. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/home_mark.h"
#include "io/file.h"
#include "io/posix.h"
#include "store/home/home_path.h"
#include "store/home/version_files.h"
#include "tier/tier.h"

namespace backstay::store {

// What the pointers name must outlive the LostFiles.
struct LostFilesWorld {
  std::string name;  // for temporary names, which must differ from those of the hosts' agents
  tier::Tier* from = nullptr;  // the durable directory, or the tier that has the copies
  io::FileSystem* files = &io::posix_filesystem();  // of the paths
  const Clock* clock = &system_clock();
  // Ok if the lost host had the same folder under this name; else why not.
  std::function<Status(const std::string& folder)> same_folder;
};

class LostFiles {
 public:
  struct File {
    std::string job;
    VersionNumber version = 0;  // 0: the job's versions could not be looked for
    std::string path;           // empty: all files of the version
    std::string why = {};       // it was left; of one that was brought: empty
  };
  struct Outcome {
    std::vector<File> brought;
    std::vector<File> left;  // not brought. A *kept* file comes once, others until they are home
  };

  explicit LostFiles(LostFilesWorld world);

  // Adds the versions of this files job. A version that cannot be read is left, with the reason.
  // `newer_elsewhere`: another host has brought all that it had up to that version, and left
  // nothing. So if a newer file stands at the path of an older version, that is no trouble.
  void add(const std::string& job, VersionNumber newer_elsewhere = 0);
  // Brings all that was added, then writes the home marks of these versions. Call it once.
  Outcome bring();

 private:
  struct Version {
    format::CommitRecord record;
    std::vector<format::FileNotHome> not_home = {};  // of the next mark
    bool pending = false;                            // it has a file that is to be brought
    bool overtaken = false;                          // another host has brought a newer one
  };
  // One path in one version.
  struct Record {
    std::size_t version = 0;  // in versions_
    VersionFiles::Entry entry;
    bool pending = false;
    FileBrought came = {};
  };
  void add_version(const format::CommitRecord& record, bool overtaken);
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

}  // namespace backstay::store
