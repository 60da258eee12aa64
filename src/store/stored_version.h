// What is known of one version: what it is, and what lies of it in a tier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/manifest.h"

namespace backstay::store {

// What the commit record and manifest say besides the chunks.
struct VersionInfo {
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint32_t chunk_bytes_max = 0;
};

// What a tier holds of it.
struct StoredVersion {
  VersionNumber version = 0;
  Level level = Level::none;  // none: no valid commit record
  format::CommitRecord record = {};
  std::string damage = {};  // why it was set aside; empty if it was not
  // Could not be read lately: it may come back, but nothing older is removed for its sake.
  bool doubtful = false;
  // Of a run of several nodes, whole on this one, and without a record here: other nodes may have
  // it. Level none; `record` says what it would be.
  bool in_doubt = false;
  std::vector<NodeId> parts = {};  // of an in doubt one: whose are here, copies too
  // What the files of it need that are here, copies too. The record has the needs of one part.
  std::vector<format::Need> needs = {};
  // Why its record, its mark of damage or its manifests could not be read, where it may be good all
  // the same: nothing may take its place, and nothing removes it.
  std::optional<Error> unreadable = {};
  bool good() const { return level != Level::none && damage.empty(); }
};

}  // namespace backstay::store
