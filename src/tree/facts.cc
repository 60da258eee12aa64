#include "tree/facts.h"

#include <tuple>

namespace backstay::tree {

namespace {
std::size_t room_of(const Fact& fact) {
  return Facts::fact_bytes + fact.name.size() + fact.value.size();
}
}  // namespace

Status Facts::publish(const Fact& fact) {
  const auto has_zero = [](const std::string& text) { return text.find('\0') != text.npos; };
  if (fact.name.empty() || has_zero(fact.name) || has_zero(fact.value)) {
    return Error(Code::invalid, "a fact needs a name, and has no zero bytes");
  }
  if (fact.name.size() > name_bytes_max || fact.value.size() > value_bytes_max) {
    return Error(Code::too_large, "fact \"" + fact.name.substr(0, name_bytes_max) +
                                      "\": a name has at most 64 bytes and a value 1024");
  }
  if (!has_room(fact)) {
    return Error(Code::too_large, "fact \"" + fact.name +
                                      "\": the nodes of the run have published as much as is kept");
  }
  put(fact, {});
  return {};
}

bool Facts::learn(const Fact& fact, const LinkId& from) {
  if (fact.name.size() > name_bytes_max || fact.value.size() > value_bytes_max) return false;
  if (const Fact* mine = find(fact.node, fact.name)) {
    if (std::tie(fact.incarnation, fact.sequence) <= std::tie(mine->incarnation, mine->sequence)) {
      return false;
    }
  }
  if (!has_room(fact)) return false;
  put(fact, from);
  return true;
}

bool Facts::has_room(const Fact& fact) const {
  const auto used = room_used_.find(fact.name);
  if (used == room_used_.end()) return room_used_.size() < names_max;
  const Fact* before = find(fact.node, fact.name);
  const std::size_t others = used->second - (before != nullptr ? room_of(*before) : 0);
  return others + room_of(fact) <= room_bytes_max;
}

void Facts::put(const Fact& fact, const LinkId& from) {
  const Name name(fact.node, fact.name);
  Known& at = known_[name];
  std::size_t& used = room_used_[fact.name];
  if (log_.erase(at.place) > 0) used -= room_of(at.fact);
  used += room_of(fact);
  at = {fact, from, ++end_};
  log_[end_] = name;
}

wire::tree::Facts Facts::after(std::uint64_t after, const LinkId& link) const {
  wire::tree::Facts batch;
  batch.link = link;
  batch.after = after;
  batch.upto = after;
  for (auto at = log_.upper_bound(after); at != log_.end(); ++at) {
    if (batch.facts.size() == batch_facts_max) return batch;
    batch.upto = at->first;
    const Known& known = known_.at(at->second);
    if (known.from != link) batch.facts.push_back(known.fact);
  }
  batch.upto = end_;
  return batch;
}

const Fact* Facts::find(NodeId node, const std::string& name) const {
  const auto found = known_.find({node, name});
  return found == known_.end() ? nullptr : &found->second.fact;
}

}  // namespace backstay::tree
