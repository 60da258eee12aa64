// The segments that a node's part of a version lies in: its own, and those of the older versions
// that it needs (docs/format/manifest.md). Blocks.
#pragma once

#include <compare>
#include <map>
#include <memory>

#include "format/manifest.h"
#include "tier/tier.h"

namespace backstay::bin {

struct SegmentId {
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
  friend auto operator<=>(const SegmentId&, const SegmentId&) = default;
};

SegmentId own_segment(const format::Manifest& manifest);
SegmentId segment_of(const format::Manifest& manifest, const format::ChunkEntry& chunk);

// Its header, read and held against what it should be. Errors: corrupt (says what is wrong), io.
Status check_header(tier::Reader& reader, const format::Manifest& manifest,
                    const SegmentId& segment);

// A segment of an older version: opened and its header checked. Errors: corrupt, which names that
// version, also where it is missing; io.
Result<std::unique_ptr<tier::Reader>> open_needed(tier::Tier& tier,
                                                  const format::Manifest& manifest,
                                                  const SegmentId& segment);

// Opened when they are first asked for. One thread.
class Segments {
 public:
  // Opens the node's own one; its header is not looked at.
  static Result<Segments> open(tier::Tier& tier, const format::Manifest& manifest);
  // The one that a chunk lies in. Errors: as of open_needed.
  Result<tier::Reader*> of(const format::ChunkEntry& chunk);

 private:
  Segments(tier::Tier& tier, const format::Manifest& manifest)
      : tier_(&tier), manifest_(&manifest) {}
  tier::Tier* tier_;
  const format::Manifest* manifest_;
  std::map<SegmentId, std::unique_ptr<tier::Reader>> open_;
};

}  // namespace backstay::bin
