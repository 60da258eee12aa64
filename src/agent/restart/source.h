// A place from which a restart reads an object.
#pragma once

#include <compare>
#include <cstdint>

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

}  // namespace backstay::agent
