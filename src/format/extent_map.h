// Which bytes of a file lie where in its object: what a list of extents means
// (docs/format/files.md).
//
// A writer keeps one a file while it is open: write() for each write, cut() for truncate and holes,
// extents() when the table is written. A reader makes one of a table's extents and asks what to
// read. Adjacent pieces are joined, so that a file written in sequence is one piece. Each call
// takes the logarithm of the number of pieces, and the pieces that it replaces. One thread at a
// time; never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "format/files.h"

namespace backstay::format {

// What a reader does for a range of a file, in order: read these bytes of the object, or take
// zeros.
struct ReadPiece {
  std::uint64_t file_offset = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> object_offset = {};  // none: a hole
  friend bool operator==(const ReadPiece&, const ReadPiece&) = default;
};

class ExtentMap {
 public:
  ExtentMap() = default;
  // A later extent wins. Precondition: no extent reaches beyond 2^64 in its file.
  explicit ExtentMap(std::span<const Extent> extents);

  void write(const Extent& extent);
  // A hole from `begin` to `end`. Of a file that is cut shorter: from its new size to its end.
  void cut(std::uint64_t begin, std::uint64_t end);

  // Without overlap, by offset in the file.
  std::vector<Extent> extents() const;
  // Covers `begin` to `end` without gap; the caller has cut `end` at the file's size.
  std::vector<ReadPiece> read(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Place {
    std::uint64_t bytes = 0;
    std::uint64_t object_offset = 0;
  };
  using Pieces = std::map<std::uint64_t, Place>;  // by offset in the file

  // So that a piece begins at `at`, or none reaches over it.
  void split(std::uint64_t at);
  void join_with_next(Pieces::iterator piece);

  Pieces pieces_;
};

}  // namespace backstay::format
