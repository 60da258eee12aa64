// A way in which the ranks of a job write the parts of a version (paper 004, section IV).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "client/group.h"
#include "client/job_start.h"
#include "client/snapshot.h"
#include "store/part_writer.h"
#include "strategy/directory.h"
#include "strategy/events.h"
#include "strategy/transport.h"

namespace backstay::strategy {

// The ranks that write; all of it outlives a strategy.
struct Ranks {
  const client::Group& group;
  const client::JobStart& job;
  Directory& directory;
  const Transport* transport;  // null: the program's launcher has none
};

struct NewVersion {
  VersionNumber number = 0;
  std::uint64_t captured_ns = 0;  // since 1970, by rank 0's clock
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // How many files make a version: paper 004's nf, and the record's number of nodes.
  virtual std::uint32_t files() const = 0;

  // Collective: all parts of a version. On return every part is safe, or the outcome is an error,
  // the same on all ranks; then no rank writes any more. With writes_behind() settle() has the
  // outcome. `report` gets this rank's part in it.
  virtual Status write(const NewVersion& version, client::Snapshot& snapshot,
                       RankReport& report) = 0;

  // A strategy that only hands over writes on behind write(). Collective: until the parts of the
  // last version are safe; `report` is completed. Errors: the same on all ranks.
  virtual bool writes_behind() const { return false; }
  virtual Status settle(RankReport& /*report*/) { return {}; }
  // This rank's own part of what settle() waits for, without waiting: why it failed.
  virtual Status so_far() { return {}; }
};

// The one that strategy.name asks for. Errors, the same on all ranks: config
// (files or groups that do not fit the ranks), unsupported (it needs the launcher's MPI).
Result<std::unique_ptr<Strategy>> make_strategy(const Ranks& ranks);

// The first error stays.
inline void keep(Status& first, const Status& next) {
  if (first.ok() && !next.ok()) first = next;
}

// A piece of an object becomes one chunk.
inline std::uint32_t piece_bytes_of(const Config& config) { return config.pool.buffer_mib << 20; }

// Pieces that the buffers of a rank hold: one is filled while another is written or sent.
inline std::size_t pieces_of_buffers(const Config& config) {
  return std::max(config.strategy.buffer_mib / config.pool.buffer_mib, 2U);
}

// As a part's writer and manifest want it.
inline store::VersionInfo info_of(const Ranks& ranks, const NewVersion& version, int part,
                                  std::uint32_t parts) {
  return {.version = version.number,
          .run = ranks.job.run,
          .node = static_cast<NodeId>(part),
          .nodes = parts,
          .ranks = static_cast<std::uint32_t>(ranks.group.ranks()),
          .chunk_bytes_max = piece_bytes_of(ranks.job.config)};
}

}  // namespace backstay::strategy
