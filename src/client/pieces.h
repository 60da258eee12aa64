// What is wanted of the saved objects, and who takes it: read with few fetches.
//
// Every fetch is a conversation with the agent and moves whole chunks, so pieces of an object that lie close to each
// other come with one. One thread.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "client/connection.h"
#include "client/fetch.h"

namespace backstay::client {

class Pieces {
 public:
  // Precondition: pieces of the same object do not overlap. An empty one is forgotten.
  void add(Rank from, std::uint64_t begin, std::uint64_t bytes, Fetch::Take take);

  // Reads and verifies all. Errors: those of a fetch, and of a `take`.
  // `run`: that saved the version; 0: whichever.
  Status verify(Connection& agent, VersionNumber version, RunId run = 0) const;
  // The same; every `take` gets its bytes (Fetch::range says how).
  Status take(Connection& agent, VersionNumber version, RunId run = 0) const;

 private:
  struct Piece {
    std::uint64_t end = 0;
    Fetch::Take take;
  };
  using Object = std::map<std::uint64_t, Piece>;  // by where they begin

  Status read(Connection& agent, VersionNumber version, RunId run, bool take) const;
  static Status hand_out(const Object& object, std::uint64_t offset, Bytes bytes);

  std::map<Rank, Object> objects_;
};

}  // namespace backstay::client
