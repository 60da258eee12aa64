// A file each writer (nf = ng): its thread writes what the buffers hold. Groups of one rank are the
// paper's file per process.
#pragma once

#include <memory>

#include "strategy/strategy.h"
#include "strategy/writer_group.h"
#include "strategy/writer_thread.h"

namespace backstay::strategy {

class OwnFiles final : public Strategy {
 public:
  // `each`: ranks a group. `behind`: write() returns once this rank's bytes were received.
  OwnFiles(const Ranks& ranks, int each, bool behind);
  std::uint32_t files() const override { return files_; }
  Status write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) override;
  bool writes_behind() const override { return behind_; }
  Status settle(RankReport& report) override;
  Status so_far() override;

 private:
  Status prepare(const NewVersion& version);
  Status take_in(const NewVersion& version, client::Snapshot& snapshot, RankReport& report);

  const Ranks ranks_;
  const std::uint32_t files_;
  const bool behind_;
  WriterGroup group_;
  Status handed_over_;                    // of the last version
  std::unique_ptr<WriterThread> thread_;  // of a rank that writes
};

}  // namespace backstay::strategy
