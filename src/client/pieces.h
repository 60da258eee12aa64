// The wanted pieces of saved objects, each with its receiver, read with few fetches.
//
// Every fetch is a conversation with the agent and moves whole chunks, so pieces of an object that
// are close together come with one fetch. One thread.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "client/connection.h"
#include "client/fetch.h"

namespace backstay::client {

class Pieces {
 public:
  // Precondition: pieces of the same object do not overlap. An empty piece is ignored.
  void add(Rank from, std::uint64_t begin, std::uint64_t bytes, Fetch::Take take);

  // Reads and verifies all. Errors: those of a fetch, and of a `take`. `run`: the one that saved
  // the version; 0: any.
  Status verify(Connection& agent, VersionNumber version, RunId run = 0) const;
  // The same; every `take` gets its bytes (Fetch::range says how).
  Status take(Connection& agent, VersionNumber version, RunId run = 0) const;

 private:
  struct Piece {
    std::uint64_t end = 0;
    Fetch::Take take;
  };
  using Object = std::map<std::uint64_t, Piece>;  // by their offset

  Status read(Connection& agent, VersionNumber version, RunId run, bool take) const;
  static Status hand_out(const Object& object, std::uint64_t offset, Bytes bytes);

  std::map<Rank, Object> objects_;
};

}  // namespace backstay::client
