// The segments that a node's part of a version lies in: its own, and those of the older versions
// that it needs (docs/format/manifest.md). Blocks.
#pragma once

#include <map>
#include <memory>

#include "agent/version/file_of.h"
#include "format/manifest.h"
#include "tier/tier.h"

namespace backstay::bin {

// Opened when they are first asked for. One thread.
class Segments {
 public:
  // Opens the node's own one; its header is not looked at.
  static Result<Segments> open(tier::Tier& tier, const format::Manifest& manifest);
  // The one that a chunk lies in. Errors: as of agent::open_needed.
  Result<tier::Reader*> of(const format::ChunkEntry& chunk);

 private:
  Segments(tier::Tier& tier, const format::Manifest& manifest)
      : tier_(&tier), manifest_(&manifest) {}
  tier::Tier* tier_;
  const format::Manifest* manifest_;
  std::map<agent::FileOf, std::unique_ptr<tier::Reader>> open_;
};

}  // namespace backstay::bin
