#include "tree/floors.h"

#include <algorithm>

namespace backstay::tree {

using wire::tree::Floor;
using wire::tree::Row;

Floors::Floors(NodeId self, std::uint32_t nodes, Changes& changes)
    : self_(self), members_(NodeSet::range(0, nodes)), changes_(changes) {}

void Floors::raise_own(const Key& key, std::uint64_t value) {
  Entry& at = entry(key);
  if (value < at.own || value == 0 || !members_.contains(self_)) return;
  if (value == at.own) {
    if (at.floor < value) at.row_changed = changes_.next();
    return;
  }
  at.own = value;
  join(key, at);
}

void Floors::raise_floor(const Key& key, std::uint64_t floor) {
  if (floor > this->floor(key)) rise(key, entry(key), floor);
}

void Floors::child_row(NodeId child, const Row& row) {
  Entry& at = entry(row.key);
  if (row.floor > at.floor) rise(row.key, at, row.floor);
  Part part{row.lowest, NodeSet::of(row.nodes)};
  if (part.nodes.empty()) return;
  Part& known = at.children[child];
  if (known == part) return;
  known = std::move(part);
  join(row.key, at);
}

void Floors::drop_child(NodeId child) {
  for (auto& [key, at] : entries_) {
    if (at.children.erase(child) > 0) join(key, at);
  }
}

std::uint64_t Floors::floor(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : found->second.floor;
}

std::uint64_t Floors::own(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : found->second.own;
}

std::uint64_t Floors::told(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : found->second.told;
}

void Floors::rows_sent() {
  for (auto& [key, at] : entries_) {
    const std::uint64_t says = at.own > 0 ? at.joined.lowest : 0;
    if (says == at.said) continue;
    at.said = says;
    at.said_at = changes_.latest;
  }
}

void Floors::rows_arrived(std::uint64_t seen) {
  for (auto& [key, at] : entries_) {
    if (at.said_at <= seen) at.told = std::max(at.told, at.said);
  }
}

// The row for the parent, and the floor if the row covers all members.
void Floors::join(const Key& key, Entry& at) {
  Part joined{UINT64_MAX, {}};
  const auto take = [&](std::uint64_t lowest, const NodeSet& nodes) {
    joined.lowest = std::min(joined.lowest, lowest);
    joined.nodes.add(nodes);
  };
  if (at.own > 0) take(at.own, NodeSet::range(self_, 1));
  for (const auto& [child, part] : at.children) take(part.lowest, part.nodes);
  if (joined == at.joined) return;
  at.fresh = true;
  at.joined = std::move(joined);
  at.row_changed = changes_.next();
  if (at.joined.lowest > at.floor && at.joined.nodes.contains(members_)) {
    rise(key, at, at.joined.lowest);
  }
}

void Floors::rise(const Key& key, Entry& at, std::uint64_t floor) {
  at.floor = floor;
  at.floor_changed = changes_.next();
  risen_.push_back({key, floor});
}

std::vector<Row> Floors::rows_since(std::uint64_t seen) const {
  std::vector<Row> rows;
  for (const auto& [key, at] : entries_) {
    if (std::max(at.row_changed, at.floor_changed) <= seen) continue;
    rows.push_back({key, at.floor, at.joined.lowest, at.joined.nodes.ranges(row_ranges_max)});
  }
  return rows;
}

std::vector<Floor> Floors::floors_since(std::uint64_t seen) const {
  std::vector<Floor> floors;
  for (const auto& [key, at] : entries_) {
    if (at.floor > 0 && at.floor_changed > seen) floors.push_back({key, at.floor});
  }
  return floors;
}

std::vector<Floor> Floors::take_risen() { return std::exchange(risen_, {}); }

bool Floors::take_complete(const NodeSet& below) {
  bool complete = false;
  for (auto& [key, at] : entries_) {
    if (!at.fresh || !at.joined.nodes.contains(below)) continue;
    at.fresh = false;
    complete = complete || at.joined.lowest > at.floor;
  }
  return complete;
}

Floors::Entry& Floors::entry(const Key& key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  make_room();
  return entries_[key];
}

void Floors::make_room() {
  if (entries_.size() < keys_max) return;
  const auto age = [](const auto& one) {
    const Entry& at = one.second;
    const bool barrier = one.first.kind == static_cast<std::uint32_t>(Kind::barrier);
    return std::pair(barrier, std::max(at.row_changed, at.floor_changed));
  };
  entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                  [&](const auto& a, const auto& b) { return age(a) < age(b); }));
}

}  // namespace backstay::tree
