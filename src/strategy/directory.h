// durable.dir as the ranks of a job without agents use it (docs/format/durable.md, "Versions that
// the ranks write"). Every rank adds parts and reads; rank 0 alone holds the locks, begins and
// records versions, and removes them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/group.h"
#include "client/job_start.h"
#include "store/job_lock.h"
#include "store/stored_version.h"
#include "tier/tier.h"

namespace backstay::strategy {

// The tier in a directory. `writer`: as of tier::DirOptions. Behind a seam for tests.
using OpenTier = std::function<Result<std::unique_ptr<tier::Tier>>(
    const Config& config, const std::string& dir, const std::string& writer)>;
// The real one.
Result<std::unique_ptr<tier::Tier>> open_files(const Config& config, const std::string& dir,
                                               const std::string& writer);

class Directory {
 public:
  // Collective. Rank 0 holds <job>/live from here on. Errors, the same on all ranks: config (no
  // durable.dir, a directory that is missing, or not the same on all hosts), busy (another program
  // of this name, or an agent, serves the job), permission ...
  static Result<std::unique_ptr<Directory>> open(const client::Group& group,
                                                 const client::JobStart& job,
                                                 const OpenTier& open_tier);

  tier::Tier& tier() const { return *tier_; }
  const std::string& job() const { return job_; }
  // The greatest number of a version there, or on the disk of rank 0's node, as one number must not
  // mean two versions.
  VersionNumber newest() const { return newest_; }

  // Why a version without a record is never finished: a writer of it has failed, and said so.
  std::optional<Error> given_up(VersionNumber version) const;

  // False only if the manifest is certainly not there.
  bool may_have_part(VersionNumber version, NodeId part) const;

  // The rest is rank 0's.
  // Takes the job's lock, and removes what an interrupted writer left. Errors: busy (also: the
  // version is there already, or another program has come), io ...
  Status begin(VersionNumber version);
  // The version exists from here on. Precondition: begin(). Errors: not_found (a part is missing);
  // those of the tier.
  Status record(format::CommitRecord record);
  // Removes all but the newest `keep` good versions, and drops the lock. Errors: those of the tier.
  Status end(std::uint32_t keep);
  // Removes a version that was not finished, and drops the lock.
  Status take_back(VersionNumber version);
  // Damaged: no restart takes it any more. Errors: busy, those of the tier.
  Status set_aside(VersionNumber version, const std::string& why);

  // In the child of a fork: only what is allowed there.
  void leave_to_parent() const;

 private:
  Directory(const client::JobStart& job, std::unique_ptr<tier::Tier> tier);
  Status take_live();
  Status see_the_same(const client::Group& group) const;
  Status find_newest(const Config& config, const OpenTier& open_tier);

  const std::string dir_;
  const std::string job_;
  std::unique_ptr<tier::Tier> tier_;
  store::HeldLock live_;
  store::HeldLock lock_;
  VersionNumber newest_ = 0;
};

}  // namespace backstay::strategy
