// Names of what the agents of a run exchange: a version of one run, and a node's file of it.
#pragma once

#include <compare>
#include <utility>

#include "base/ids.h"

namespace backstay::store {

// A version of one run. Of two runs that used the same number, that with the smaller run counts as
// older: the order has to be the same on all nodes, and clocks may differ.
using VersionOfRun = std::pair<VersionNumber, RunId>;

// A file of a node: the segment and manifest that node `node` of run `run` wrote for a version; or
// the parity that it kept of the others of its group, with the manifest of that
// (docs/format/parity.md).
struct FileOf {
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
  bool parity = false;  // instead of its segment, the parity that it kept of its group's
  auto operator<=>(const FileOf&) const = default;  // NOLINT: <=> is no 0
};

}  // namespace backstay::store
