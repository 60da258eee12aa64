// The versions in durable.dir, as a restart without agents sees them (client/restart_loop.h).
//
// Rank 0 alone lists the directory and sets versions aside. Every rank reads the record, the
// manifest that names its object, and the object: once, where memory for it is left. What was read
// and verified is exchanged with the target's bytes, and back where any rank lacks something.
#pragma once

#include <optional>
#include <vector>

#include "client/restart_loop.h"
#include "strategy/directory.h"
#include "strategy/file_objects.h"

namespace backstay::strategy {

class FileVersions final : public client::SavedVersions {
 public:
  // Both must live longer.
  FileVersions(const client::Group& group, Directory& directory)
      : group_(group), directory_(directory) {}

  Result<Offer> newest_below(VersionNumber version, RunId run) override;
  bool ranks_agree() const override { return true; }
  client::RestoreOutcome restore(client::ObjectTarget& target, VersionNumber version, RunId run,
                                 const client::Restore::Agree& agree) override;
  // Sets damaged ones aside.
  void skipped(VersionNumber version, const Error& why) override;

 private:
  const client::Group& group_;
  Directory& directory_;
  std::optional<std::vector<store::StoredVersion>> versions_;
};

// The record of a version that is good. `run`: the one that saved it; 0: any. Errors: not_found,
// corrupt, io.
Result<format::CommitRecord> good_record(Directory& directory, VersionNumber version,
                                         RunId run = 0);

}  // namespace backstay::strategy
