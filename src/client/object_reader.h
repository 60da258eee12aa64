// Reading ranges of saved objects, wherever the version's bytes lie: an agent fetches them
// (fetch.h), or this process reads the files (src/strategy). Every byte is checked on its way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "format/object.h"

namespace backstay::client {

// One rank's object of one version. Errors of all: not_found, corrupt, io, agent_lost, protocol ...
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  struct Last {
    Buffer bytes;
    std::uint64_t object_bytes = 0;
  };
  // The last `bytes` of the object, or all of it where it is shorter.
  virtual Result<Last> last(std::uint64_t bytes) = 0;
  // The table of the object's regions.
  Result<format::Table> table();
  // Precondition of both: the range lies within the object.
  Status range(std::uint64_t begin, std::span<std::byte> to);
  // Pieces of the range, in any order, each with a good checksum; some come again after a passing
  // error. An error of `take` ends the reading with it.
  using Take = std::function<Status(std::uint64_t object_offset, Bytes piece)>;
  virtual Status range(std::uint64_t begin, std::uint64_t bytes, Take take) = 0;
};

// The objects of all ranks of one version.
class SavedObjects {
 public:
  virtual ~SavedObjects() = default;
  virtual std::unique_ptr<ObjectReader> of(Rank rank) = 0;
  // Bytes of the largest piece that moves as a whole: reading a smaller gap costs little.
  virtual std::uint64_t piece_bytes() const = 0;
};

}  // namespace backstay::client
