#include "client/blocks.h"

#include <algorithm>

#include "base/check.h"

namespace backstay::client {

std::uint64_t Block::volume() const {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) product *= extent;
  return product;
}

std::optional<Block> intersection(const Block& a, const Block& b) {
  BACKSTAY_CHECK(a.shape.size() == b.shape.size());
  Block common;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    const std::uint64_t begin = std::max(a.offset[i], b.offset[i]);
    const std::uint64_t end = std::min(a.offset[i] + a.shape[i], b.offset[i] + b.shape[i]);
    if (begin >= end) return std::nullopt;
    common.offset.push_back(begin);
    common.shape.push_back(end - begin);
  }
  return common;
}

CommonRuns::CommonRuns(const Block& from, const Block& to, const Block& common) {
  std::uint64_t from_stride = 1;
  std::uint64_t to_stride = 1;
  bool contiguous = true;  // all inner dimensions are whole in both blocks
  for (std::size_t i = common.shape.size(); i-- > 0;) {
    const std::uint64_t extent = common.shape[i];
    from_begin_ += (common.offset[i] - from.offset[i]) * from_stride;
    to_begin_ += (common.offset[i] - to.offset[i]) * to_stride;
    if (contiguous) {
      length_ *= extent;
    } else {
      outer_.push_back({extent, from_stride, to_stride});
      count_ *= extent;
    }
    contiguous = contiguous && extent == from.shape[i] && extent == to.shape[i];
    from_stride *= from.shape[i];
    to_stride *= to.shape[i];
  }
  std::reverse(outer_.begin(), outer_.end());
}

CommonRuns::Run CommonRuns::at(std::uint64_t index) const {
  Run run{from_begin_, to_begin_, length_};
  for (auto dimension = outer_.rbegin(); dimension != outer_.rend(); ++dimension) {
    run.from += index % dimension->extent * dimension->from_stride;
    run.to += index % dimension->extent * dimension->to_stride;
    index /= dimension->extent;
  }
  return run;
}

std::uint64_t CommonRuns::first_ending_after(std::uint64_t position) const {
  std::uint64_t low = 0;
  std::uint64_t high = count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (at(middle).from + length_ > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace backstay::client
