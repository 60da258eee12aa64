// Collective writing (paper 004's coIO): groups of neighbouring ranks write one file each, field by
// field, with MPI-IO's split collective calls. Checksums are made while MPI writes.
#pragma once

#include "strategy/group_file.h"
#include "strategy/strategy.h"

namespace backstay::strategy {

class Collective final : public Strategy {
 public:
  // `files`: at most the number of ranks.
  Collective(const Ranks& ranks, std::uint32_t files);
  std::uint32_t files() const override { return files_; }
  Status write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) override;

 private:
  const Ranks ranks_;
  const std::uint32_t files_;
};

}  // namespace backstay::strategy
