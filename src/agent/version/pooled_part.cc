#include "agent/version/pooled_part.h"

#include <algorithm>
#include <cstring>

namespace backstay::agent {

PooledPart::PooledPart(const Pool& pool, const store::FileOf& file,
                       const format::SegmentHeader& header, std::vector<Slot> slots)
    : pool_(pool), file_(file), header_(format::encode(header)), slots_(std::move(slots)) {
  std::ranges::sort(slots_, {}, &Slot::offset);
}

bool PooledPart::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (offset < header_.size()) {
    const std::uint64_t bytes = std::min(header_.size() - offset, to.size());
    std::memcpy(to.data(), header_.data() + offset, bytes);
    offset += bytes;
    to = to.subspan(bytes);
  }
  auto slot = std::ranges::upper_bound(slots_, offset, {}, &Slot::offset);
  if (slot != slots_.begin()) --slot;
  for (; !to.empty() && slot != slots_.end(); ++slot) {
    const std::uint64_t whole = format::slot_bytes(slot->length);
    if (offset < slot->offset || offset - slot->offset >= whole) return false;
    const std::uint64_t skip = offset - slot->offset;
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(whole - skip, to.size()));
    if (!read_slot(*slot, skip, to.first(bytes))) return false;
    offset += bytes;
    to = to.subspan(bytes);
  }
  return to.empty();
}

// With its padding, which the buffer does not have.
bool PooledPart::read_slot(const Slot& slot, std::uint64_t skip, std::span<std::byte> to) const {
  const std::uint64_t payload = slot.length - std::min<std::uint64_t>(skip, slot.length);
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(payload, to.size()));
  std::memset(to.data() + bytes, 0, to.size() - bytes);
  return pool_.copy_out(slot.buffer, slot.returns, skip, to.first(bytes));
}

}  // namespace backstay::agent
