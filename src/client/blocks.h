// Blocks of a global array: the common part of two, and its place in the memory of each. Pure
// arithmetic.
//
// Row-major, in units of the caller's choice: with the last dimension in bytes, positions are
// bytes.
// Preconditions of all: the same number of dimensions (1 or more), and volumes that fit into 64
// bits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace backstay::client {

struct Block {
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offset;  // of its first element in the global array

  std::uint64_t volume() const;
};

// nullopt: they have no common element.
std::optional<Block> intersection(const Block& a, const Block& b);

// The common part of two blocks as runs that are contiguous in both, in the order in which they lie
// in `from`.
class CommonRuns {
 public:
  struct Run {
    std::uint64_t from = 0;  // position in the memory of `from`
    std::uint64_t to = 0;    // position in the memory of `to`
    std::uint64_t length = 0;
  };
  // Precondition: `common` is their intersection.
  CommonRuns(const Block& from, const Block& to, const Block& common);

  std::uint64_t count() const { return count_; }
  // Precondition: index < count().
  Run at(std::uint64_t index) const;
  // The begin and the end of the common part in the memory of `from`.
  std::uint64_t begin() const { return at(0).from; }
  std::uint64_t end() const { return at(count_ - 1).from + length_; }
  // The first run that ends after a position in `from`; count() if none does.
  std::uint64_t first_ending_after(std::uint64_t position) const;

 private:
  struct Dimension {  // outside of a run, the outermost first
    std::uint64_t extent;
    std::uint64_t from_stride;
    std::uint64_t to_stride;
  };
  std::vector<Dimension> outer_;
  std::uint64_t from_begin_ = 0;
  std::uint64_t to_begin_ = 0;
  std::uint64_t length_ = 1;
  std::uint64_t count_ = 1;
};

}  // namespace backstay::client
