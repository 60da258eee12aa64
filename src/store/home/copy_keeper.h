// Keeps copies of another host's captured files while these are not at home
// (docs/protocol/home.md#copies-on-another-host numbers the steps; `keeper.N` are failpoints).
//
// All that it knows is on the two disks: each round compares them. Blocks on the line and on its
// tier. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/catalog.h"
#include "store/home/copy_note.h"
#include "store/home/remote_tier.h"

namespace backstay::store {

class CopyKeeper {
 public:
  struct World {
    tier::Tier* tier = nullptr;  // its own; lives longer
    const Clock* clock = &system_clock();
    std::string job;                // of the files
    std::string host;               // that has written them, as `backstay run` reaches it
    std::uint64_t bytes_per_s = 0;  // 0: no limit
    std::function<Result<FolderFacts>(const std::string&)> look_at_folder;
  };
  // Its owner holds the lock of the job's folder in the tier.
  CopyKeeper(World world, AskLine ask) : world_(std::move(world)), theirs_(std::move(ask)) {}

  struct Round {
    std::size_t waiting = 0;  // versions with files that are not at home
    std::size_t copies = 0;   // of those, the ones whose copies are safe
    std::vector<std::string> troubles = {};
  };
  // Errors: of the way to the other host.
  Result<Round> round();

 private:
  Status keep(const StoredVersion& version);
  Result<CopyNote> note_of(const StoredVersion& version);
  Status copy(const StoredVersion& version);
  Status tell(const StoredVersion& version);
  Status tidy(const std::vector<StoredVersion>& theirs);

  const World world_;
  RemoteTier theirs_;
};

// Whether none of a version's files waits to be brought to its path. Without a mark all do.
// Errors: of the tier.
Result<bool> nothing_waits(tier::Tier& tier, const format::CommitRecord& record);

}  // namespace backstay::store
