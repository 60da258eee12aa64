// Chunks that a new version keeps of an older one: where they lie (docs/format/manifest.md,
// "Chunks in older versions"). Pure.
#pragma once

#include <vector>

#include "agent/disk/store.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

// The version that chunks may be kept of: the newest that this run has written here, or the one
// that the run went on from (restart/restore.h says where). Gives its parts, one at least. Errors:
// again (it is another one, not local, damaged or about to go; says why).
Result<Parts> find_base(const JobState& state, VersionNumber version);

// Where this chunk of the base's object lies, at `offset` in the new one. Errors: invalid (the base
// has no such chunk).
Result<OlderChunk> keep(const Parts& base, const format::ObjectId& object,
                        const wire::KeptChunk& chunk, std::uint64_t offset);

// What the parts of a version may need that has this base, on whichever node: in a run of one node
// that is what its one manifest says. The ranks of a run agree on the base, so each agent comes to
// the same. Errors: again (too many).
Result<std::vector<format::Need>> needs_on(const JobState& state, const Parts& base);

// For the manifest.
store::OlderChunks older_chunks(const std::vector<OlderChunk>& chunks);

}  // namespace backstay::agent
