#include "strategy/strategy.h"

namespace backstay::strategy {

store::VersionInfo info_of(const Ranks& ranks, const NewVersion& version, int part,
                           std::uint32_t parts) {
  return {.version = version.number,
          .run = ranks.job.run,
          .node = static_cast<NodeId>(part),
          .nodes = parts,
          .ranks = static_cast<std::uint32_t>(ranks.group.ranks()),
          .chunk_bytes_max = piece_bytes_of(ranks.job.config)};
}

}  // namespace backstay::strategy
