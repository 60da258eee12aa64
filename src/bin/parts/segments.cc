#include "bin/parts/segments.h"

#include "agent/disk/needed_segment.h"
#include "agent/version/held_files.h"
#include "agent/version/needed_files.h"

namespace backstay::bin {

Result<Segments> Segments::open(tier::Tier& tier, const format::Manifest& manifest) {
  Segments segments(tier, manifest);
  const agent::FileOf own = agent::file_of(manifest);
  BACKSTAY_ASSIGN(segments.open_[own], tier.open(agent::names_of(manifest.job, own).data));
  return segments;
}

Result<tier::Reader*> Segments::of(const format::ChunkEntry& chunk) {
  const agent::FileOf segment = agent::file_with(*manifest_, chunk);
  auto at = open_.find(segment);
  if (at == open_.end()) {
    BACKSTAY_ASSIGN(auto reader, agent::open_needed(*tier_, manifest_->job, segment));
    at = open_.emplace(segment, std::move(reader)).first;
  }
  return at->second.get();
}

}  // namespace backstay::bin
