// What a restore brings back, and where each participant's object is read from. There is one for a
// node alone (finder_here.h) and one for several nodes (finder_around.h).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/version/held_files.h"
#include "base/ids.h"
#include "base/result.h"

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

class Finder {
 public:
  struct Found {
    VersionOfRun version;
    std::uint32_t nodes =
        1;  // of the version's run; counts where a source names no node, like the next
    std::uint32_t ranks = 0;
    std::vector<Source> sources;  // by participant
  };
  struct Nothing {  // that is left to try
    Code code = Code::none;
    std::string message;
  };
  using Done = std::function<void(const std::variant<Found, Nothing>&)>;
  virtual ~Finder() = default;

  // `done` is called once, at once or later, and never after the finder's end.
  virtual void find(Done done) = 0;
  // What was read from there for this participant cannot be used; find() takes it into account.
  virtual void failed(std::size_t participant, const Source& source, const Error& why) = 0;
  // Could not be read any more: somebody else who has the same bytes, so that nothing has to be
  // begun anew.
  virtual std::optional<Source> instead(std::size_t participant, const Source& source,
                                        const Error& why) = 0;
  // The durable directory was listed once more, as find() may have ordered
  // (JobState::durable_looks).
  virtual void durable_scanned() {}
};

}  // namespace backstay::agent
