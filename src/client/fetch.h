// Reading a range of one rank's object out of a version (docs/protocol/agent.md, `fetch`).
//
// The agent hands over only the chunks that hold the range. They are checked and taken at once. The
// caller does not trust them before the call has succeeded, so the protocol's second pass has
// nothing left to do.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "client/connection.h"
#include "client/object_reader.h"

namespace backstay::client {

class Fetch final : public ObjectReader {
 public:
  // `run`: the one that saved the version; 0: any.
  Fetch(Connection& agent, VersionNumber version, Rank rank, RunId run = 0)
      : agent_(agent), version_(version), rank_(rank), run_(run) {}

  using ObjectReader::range;
  Status range(std::uint64_t begin, std::uint64_t bytes, Take take) override;
  Result<Last> last(std::uint64_t bytes) override;

 private:
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

// The objects of a version that the agent can bring. `run`: as of a Fetch.
class AgentObjects final : public SavedObjects {
 public:
  AgentObjects(Connection& agent, VersionNumber version, RunId run = 0)
      : agent_(agent), version_(version), run_(run) {}
  std::unique_ptr<ObjectReader> of(Rank rank) override {
    return std::make_unique<Fetch>(agent_, version_, rank, run_);
  }
  std::uint64_t piece_bytes() const override { return agent_.buffer_bytes(); }

 private:
  Connection& agent_;
  const VersionNumber version_;
  const RunId run_;
};

}  // namespace backstay::client
