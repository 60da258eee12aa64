// Answers the keeper of this host's captured files (docs/protocol/home.md#copies-on-another-host):
// lets it read one job's folder, and hears which copies are safe. Blocks on the tier. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/ids.h"
#include "store/home/copy_line.h"
#include "store/home/shared_folder.h"
#include "tier/tier.h"

namespace backstay::store {

class CopyGiver {
 public:
  struct World {
    tier::Tier* tier = nullptr;  // lives longer
    std::string job;
    std::string host;
    std::string dir;  // the folder of the tier, which may not be there yet
    std::function<Result<FolderFacts>(const std::string&)> look_at_folder;
    // The copy of that version is safe on the keeper's disk.
    std::function<Status(VersionNumber, RunId)> copied;
  };
  explicit CopyGiver(World world) : world_(std::move(world)) {}

  LineMessage answer(const LineMessage& question);

 private:
  Result<LineMessage> answered(const LineMessage& question);
  Result<LineMessage> of_tier(const std::string& what, const LineMessage& question);
  Result<LineMessage> read(const std::string& name, const LineMessage& question);

  const World world_;
  std::string open_;  // name of reader_
  std::unique_ptr<tier::Reader> reader_;
};

}  // namespace backstay::store
