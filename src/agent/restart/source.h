// The places from which a restart reads a version's objects.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "agent/version/stored.h"
#include "base/ids.h"

namespace backstay::agent {

// Where bytes come from, the nearest first. pool: this node's memory; local: its disk, by the
// store; replica: the disk of an agent, by the FileReader (our own where the store does not know
// the version); durable: the durable directory.
enum class Place { pool, local, replica, durable };
const char* name_of(Place place);

struct Source {
  // Of a place that has the files of several nodes: it is not known which of them holds the object.
  static constexpr NodeId any_node = UINT32_MAX;
  Place place = Place::local;
  NodeId holder = 0;                                // of a replica: member of the present run
  NodeId node = 0;                                  // whose file
  auto operator<=>(const Source&) const = default;  // NOLINT: <=> is no 0
};

// A version, and the source of each participant's object.
struct FoundVersion {
  VersionOfRun version;
  // Of the version's run, like the next; they count where a source names no node.
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 0;
  std::vector<Source> sources;
};

}  // namespace backstay::agent
