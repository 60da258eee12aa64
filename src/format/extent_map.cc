#include "format/extent_map.h"

#include <algorithm>
#include <iterator>

namespace backstay::format {

ExtentMap::ExtentMap(std::span<const Extent> extents) {
  for (const Extent& extent : extents) write(extent);
}

void ExtentMap::write(const Extent& extent) {
  if (extent.bytes == 0) return;
  cut(extent.file_offset, extent.file_offset + extent.bytes);
  const auto here =
      pieces_.emplace(extent.file_offset, Place{extent.bytes, extent.object_offset}).first;
  join_with_next(here);
  if (here != pieces_.begin()) join_with_next(std::prev(here));
}

void ExtentMap::cut(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  split(begin);
  split(end);
  pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
}

void ExtentMap::split(std::uint64_t at) {
  const auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin()) return;
  auto& [begin, place] = *std::prev(next);
  const std::uint64_t before = at - begin;
  if (before >= place.bytes) return;
  pieces_.emplace_hint(next, at, Place{place.bytes - before, place.object_offset + before});
  place.bytes = before;
}

void ExtentMap::join_with_next(Pieces::iterator piece) {
  const auto next = std::next(piece);
  if (next == pieces_.end()) return;
  Place& place = piece->second;
  if (piece->first + place.bytes != next->first ||
      place.object_offset + place.bytes != next->second.object_offset) {
    return;
  }
  place.bytes += next->second.bytes;
  pieces_.erase(next);
}

std::vector<Extent> ExtentMap::extents() const {
  std::vector<Extent> all;
  all.reserve(pieces_.size());
  for (const auto& [begin, place] : pieces_) {
    all.push_back({begin, place.bytes, place.object_offset});
  }
  return all;
}

std::vector<ReadPiece> ExtentMap::read(std::uint64_t begin, std::uint64_t end) const {
  std::vector<ReadPiece> plan;
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.begin()) --piece;  // it may reach over `begin`
  std::uint64_t at = begin;
  for (; piece != pieces_.end() && piece->first < end; ++piece) {
    const auto& [first, place] = *piece;
    const std::uint64_t last = std::min(first + place.bytes, end);
    if (last <= at) continue;
    if (first > at) plan.push_back({at, first - at, {}});
    const std::uint64_t from = std::max(first, at);
    plan.push_back({from, last - from, place.object_offset + (from - first)});
    at = last;
  }
  if (at < end) plan.push_back({at, end - at, {}});
  return plan;
}

}  // namespace backstay::format
