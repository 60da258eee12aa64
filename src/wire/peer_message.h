// The messages about files between the agents of a run (docs/protocol/peers.md), as structs.
// Nothing here does I/O.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/cut_message.h"
#include "wire/limits.h"

namespace backstay::wire::peer {

inline constexpr std::uint16_t protocol_version = 1;

// An agent that has a file of node `node` of the version's run.
struct Holder {
  NodeId agent = 0;                                 // in the present run
  NodeId node = 0;                                  // in the version's run
  auto operator<=>(const Holder&) const = default;  // NOLINT: <=> is no 0
};

// An older version in whose segments chunks of another one lie (docs/format/manifest.md).
struct Need {
  VersionNumber version = 0;
  RunId run = 0;
  bool operator==(const Need&) const = default;
};

struct Get {
  std::uint64_t ticket = 0;
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;        // the owner of the file
  bool parity = false;    // the parity that it kept, instead of its segment
  bool manifest = false;  // else the bytes [offset, offset + bytes) of the segment
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
struct No {
  std::uint64_t ticket = 0;
  Code code = Code::internal;
  std::string message;
};
struct Keep {
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  Level recorded = Level::none;  // the fields below count only if it is not none
  std::uint64_t payload_bytes = 0;
  std::uint64_t manifests_sum = 0;
  std::uint64_t captured_ns = 0;
  std::uint64_t committed_ns = 0;
  std::vector<NodeId> holders;  // agents that have the file or were asked to keep it
  std::vector<Need> needs;      // as in the record; counts only where there is one
};
struct Kept {
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
  Code code = Code::ok;
  std::string message;
};
struct Holds {
  std::uint64_t batch = 0;
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
  bool parity = false;  // the parity that it kept; the ranks are those of its whole group
  bool gone = false;
  std::vector<Rank> ranks;
};
struct HoldsSeen {
  std::uint64_t batch = 0;
};
struct Lookup {
  std::uint64_t ticket = 0;
  VersionNumber version = 0;
  RunId run = 0;
  Rank rank = 0;
  bool parity = false;  // the parity of the rank's group, instead of its object
};
struct Holders {
  std::uint64_t ticket = 0;
  std::vector<Holder> holders;
};

// Rebuilding (docs/protocol/peers.md): to an agent that has parity of the rank's group.
struct Rebuild {
  std::uint64_t ticket = 0;
  VersionNumber version = 0;
  RunId run = 0;
  Rank rank = 0;
};
struct Rebuilt {
  std::uint64_t ticket = 0;
  Code code = Code::internal;
  std::string message;
  NodeId node = 0;  // the owner of the file that the sender has now
};

struct Look {
  std::uint64_t ticket = 0;
  VersionNumber version = 0;  // its files are listed as well; 0: of none
  RunId run = 0;
};
struct Seen {
  std::uint64_t ticket = 0;
  std::string host;
  std::int32_t pid = 0;
  std::uint32_t ranks = 0;
  std::uint32_t connected = 0;
  std::uint64_t resident_bytes = 0;
  std::uint32_t buffer_bytes = 0;
  std::uint32_t buffers = 0;
  std::uint32_t busy = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
  VersionNumber newest = 0;
  Level level = Level::none;
  std::string lacks;  // for people; "": nothing
  Level lacks_level = Level::none;
  Code lacks_code = Code::ok;
  std::vector<NodeId> files;  // nodes of the version that have files on its disk
  // The parity of that version there: the node that made it, the number of blocks (0: none), the
  // owners of the segments on the ring.
  NodeId parity_of = 0;
  std::uint32_t parity_blocks = 0;
  std::vector<NodeId> parity_group;
};

// Becoming durable (docs/protocol/drain.md).
struct Due {
  VersionNumber version = 0;
  RunId run = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint64_t captured_ns = 0;
  bool waited = false;
};
struct Which {
  std::uint64_t ticket = 0;
  VersionNumber version = 0;
  RunId run = 0;
};
struct Parts {
  std::uint64_t ticket = 0;
  std::vector<NodeId> nodes;
};
struct Turn {
  std::uint64_t ticket = 0;
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
};
struct TurnOver {
  std::uint64_t ticket = 0;
  Code code = Code::ok;
  std::string message;
  bool damaged = false;
  std::uint64_t payload_bytes = 0;
  std::uint64_t digest = 0;
  std::vector<Need> needs;  // of its manifest
};
struct Durable {
  VersionNumber version = 0;
  RunId run = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint64_t payload_bytes = 0;
  std::uint64_t manifests_sum = 0;
  std::uint64_t captured_ns = 0;
  std::uint64_t committed_ns = 0;
  std::vector<Need> needs;
};
struct NotDurable {
  VersionNumber version = 0;
  RunId run = 0;
  Code code = Code::ok;
  std::string message;
};
struct DurableGone {
  VersionNumber version = 0;
  RunId run = 0;
};

// A file of the receiver was found damaged.
struct Doubt {
  VersionNumber version = 0;
  RunId run = 0;
  NodeId node = 0;
};

// Of the first rank at or below the receiver that a cut waits for: answered by RefuseCut with its
// name (docs/protocol/cut.md).
struct WhoIsLate {
  std::uint64_t cut = 0;
  std::uint32_t seconds = 0;  // how long the cut has lasted
};

// The order is the type number on the wire, from 1: append only.
using Message =
    std::variant<Get, No, Keep, Kept, Holds, HoldsSeen, Lookup, Holders, Look, Seen, Due, Which,
                 Parts, Turn, TurnOver, Durable, NotDurable, DurableGone, Rebuild, Rebuilt, Doubt,
                 AskCut, CutReport, RefuseCut, CutOrder, CutOver, WhoIsLate>;

// One message. Errors: too_large, invalid.
Result<Buffer> encode(const Message& message);
// As wire::decode(). Errors: protocol, invalid.
Result<Message> decode(Bytes packet);

}  // namespace backstay::wire::peer
