// Reading a range of one rank's object out of a version (docs/protocol/agent.md, `fetch`).
//
// The agent hands over only the chunks that hold the range. They are checked and taken at once. The
// caller does not trust them before the call has succeeded, so the protocol's second pass has
// nothing left to do.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "client/connection.h"
#include "format/object.h"

namespace backstay::client {

class Fetch {
 public:
  // `run`: the one that saved the version; 0: any.
  Fetch(Connection& agent, VersionNumber version, Rank rank, RunId run = 0)
      : agent_(agent), version_(version), rank_(rank), run_(run) {}

  // The table of the object's regions. Errors of all: not_found, corrupt, agent_lost, protocol ...
  Result<format::Table> table();
  // Precondition of both: the range lies within the object.
  Status range(std::uint64_t begin, std::span<std::byte> to);
  // Pieces of the range, in any order, each with a good checksum; some come again after a passing
  // error. An error of `take` ends the fetch with it.
  using Take = std::function<Status(std::uint64_t object_offset, Bytes piece)>;
  Status range(std::uint64_t begin, std::uint64_t bytes, Take take);

 private:
  Result<Buffer> last(std::uint64_t bytes);
  Status run(const wire::Fetch& what);
  Status on(const wire::Plan& plan, const wire::Fetch& what);
  Status on(const wire::Chunks& chunks);
  Status check(const wire::ChunkInPool& chunk);
  bool complete();

  Connection& agent_;
  const VersionNumber version_;
  const Rank rank_;
  const RunId run_;
  std::uint64_t object_bytes_ = 0;
  std::uint64_t begin_ = 0;    // of the range
  std::uint32_t attempt_ = 0;  // of the present plan
  bool verifying_ = false;     // the plan can still succeed
  std::uint64_t bytes_ = 0;    // of the range
  Take take_;
  Buffer tail_;  // the range's memory, if its length is known only with the plan
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  // begin and end in the object
};

}  // namespace backstay::client
