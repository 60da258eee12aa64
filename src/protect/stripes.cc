#include "protect/stripes.h"

#include <algorithm>

#include "base/check.h"

namespace backstay::protect {

Stripes::Stripes(ParityShape shape, std::vector<std::uint64_t> segment_bytes)
    : shape_(shape), segment_bytes_(std::move(segment_bytes)) {
  BACKSTAY_CHECK(segment_bytes_.size() == shape_.members());
  const std::uint64_t longest = *std::ranges::max_element(segment_bytes_);
  const std::uint64_t unit = shape_.data * alignment;
  block_bytes_ = (longest / unit + (longest % unit != 0 ? 1 : 0)) * alignment;
}

Block Stripes::block(std::uint32_t stripe, std::uint32_t index) const {
  const std::uint32_t member = (stripe + index) % count();
  if (is_parity(index)) return {index, member, index * block_bytes_, block_bytes_};
  const std::uint64_t offset = (index - shape_.parity) * block_bytes_;
  const std::uint64_t length = segment_bytes_[member];
  const std::uint64_t bytes = length > offset ? std::min(block_bytes_, length - offset) : 0;
  return {index, member, offset, bytes};
}

}  // namespace backstay::protect
