// The wanted pieces of saved objects, each with its receiver, read with few reads.
//
// Every read moves whole chunks, and is a conversation where an agent has them, so pieces of an
// object that are close together come with one read. One thread.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "client/object_reader.h"

namespace backstay::client {

class Pieces {
 public:
  // Precondition: pieces of the same object do not overlap. An empty piece is ignored.
  void add(Rank from, std::uint64_t begin, std::uint64_t bytes, ObjectReader::Take take);

  // Reads and verifies all. Errors: those of the reading, and of a `take`.
  Status verify(SavedObjects& saved) const;
  // The same; every `take` gets its bytes (ObjectReader::range says how).
  Status take(SavedObjects& saved) const;

 private:
  struct Piece {
    std::uint64_t end = 0;
    ObjectReader::Take take;
  };
  using Object = std::map<std::uint64_t, Piece>;  // by their offset

  Status read(SavedObjects& saved, bool take) const;
  static Status hand_out(const Object& object, std::uint64_t offset, Bytes bytes);

  std::map<Rank, Object> objects_;
};

}  // namespace backstay::client
