#include "agent/redundancy/object_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace backstay::agent {

using wire::peer::Holder;
using wire::peer::Holds;

namespace {

// Registrars do not know of each other: what differs from rank to rank spreads the ranks of one
// lost node over its keepers although each of them is asked for the first time.
std::uint64_t spread(Rank rank, NodeId agent) {
  std::uint64_t x = (std::uint64_t{rank} << 32 | agent) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
  return x ^ (x >> 32);
}

// One that names no file asks for all that a member holds; one that is gone, too, says that this
// was all.
bool names_no_file(const Holds& holds) { return holds.version == 0 && holds.ranks.empty(); }
Holds that_was_all() {
  Holds end;
  end.gone = true;
  return end;
}

}  // namespace

// --- what we hold --------------------------------------------------------------------------------

void ObjectDirectory::announce(const std::vector<HeldFile>& held) {
  announced_ = true;
  for (const HeldFile& file : held) add(file);
  want_all_.clear();
  for (NodeId member = 0; member < peers_.members(); ++member) {
    if (member != peers_.self() && lost_.count(member) == 0) tell(member, that_was_all());
  }
}

void ObjectDirectory::tell_all(NodeId registrar) {
  if (!announced_) {
    want_all_.insert(registrar);
    return;
  }
  for (const auto& [file, held] : held_.all()) tell(held, /*gone=*/false, registrar);
  tell(registrar, that_was_all());
}

void ObjectDirectory::add(const HeldFile& held) {
  held_.add(held);
  tell(held, /*gone=*/false);
}

void ObjectDirectory::remove(const FileOf& file) {
  const HeldFile* held = held_.find(file);
  if (held == nullptr) return;
  tell(*held, /*gone=*/true);
  held_.remove(file);
}

// `only`: this registrar alone.
void ObjectDirectory::tell(const HeldFile& held, bool gone, std::optional<NodeId> only) {
  const FileOf& of = held.file;
  const Holds some{0, of.version, of.run, of.node, of.parity, gone, {}};
  std::map<NodeId, Holds> parts;
  for (const Rank rank : held.ranks) {
    const NodeId registrar = registrar_of(rank);
    if (lost_.count(registrar) != 0 || (only && *only != registrar)) continue;
    Holds& part = parts.try_emplace(registrar, some).first->second;
    part.ranks.push_back(rank);
    if (part.ranks.size() < wire::list_entries_max) continue;
    tell(registrar, part);
    part.ranks.clear();
  }
  for (const auto& [registrar, part] : parts) {
    if (!part.ranks.empty()) tell(registrar, part);
  }
}

void ObjectDirectory::tell(NodeId registrar, const Holds& holds) {
  Holds batch = holds;
  batch.batch = next_batch_++;
  unanswered_[batch.batch] = registrar;
  peers_.send(registrar, std::move(batch));
}

// --- what others hold ----------------------------------------------------------------------------

void ObjectDirectory::open() {
  open_ = true;
  for (Question& question : std::exchange(waiting_, {})) ask(std::move(question));
}

void ObjectDirectory::lookup(VersionOfRun version, Rank rank, Found found, bool parity) {
  Question question{version, rank, std::move(found), parity};
  if (open_) return ask(std::move(question));
  waiting_.push_back(std::move(question));
  if (!lost_.empty()) tell(*lost_.begin(), Holds{});  // it is back, or this ends as what waits
}

void ObjectDirectory::ask(Question question) {
  const NodeId registrar = registrar_of(question.rank);
  const std::uint64_t ticket = asked_.add(registrar, std::move(question.found));
  const auto [version, run] = question.version;
  peers_.send(registrar, wire::peer::Lookup{ticket, version, run, question.rank, question.parity});
}

// --- events --------------------------------------------------------------------------------------

bool ObjectDirectory::on(NodeId from, const wire::peer::No& no) {
  const auto found = asked_.take(from, no.ticket);
  if (found) (*found)(Error(no.code, no.message));
  return found.has_value();
}

void ObjectDirectory::on(NodeId from, const Holds& holds) {
  back(from);
  holds.gone ? forget(from, holds) : remember(from, holds);
  peers_.send(from, wire::peer::HoldsSeen{holds.batch});
  if (names_no_file(holds)) holds.gone ? answer_waiting() : tell_all(from);
}

void ObjectDirectory::on(NodeId from, const wire::peer::HoldsSeen& seen) {
  back(from);
  const auto batch = unanswered_.find(seen.batch);
  if (batch != unanswered_.end() && batch->second == from) unanswered_.erase(batch);
}

void ObjectDirectory::on(NodeId from, const wire::peer::Lookup& lookup) {
  back(from);
  answer(from, lookup);
}

void ObjectDirectory::on(NodeId from, const wire::peer::Holders& holders) {
  back(from);
  if (const auto found = asked_.take(from, holders.ticket)) (*found)(holders.holders);
}

void ObjectDirectory::remember(NodeId from, const Holds& holds) {
  const Holder holder{from, holds.node};
  std::size_t& entries = entries_of_[from];
  for (const Rank rank : holds.ranks) {
    if (registrar_of(rank) != peers_.self()) continue;
    if (entries == entries_per_member_max) {
      if (too_many_.insert(from).second) {
        spdlog::warn(
            "agent {} holds more than {} objects of the ranks that we keep the list of; "
            "the rest is not found by other agents",
            from, entries_per_member_max);
      }
      return;
    }
    std::vector<Holder>& known = objects_[{holds.version, holds.run, rank, holds.parity}];
    if (std::find(known.begin(), known.end(), holder) != known.end()) continue;
    known.push_back(holder);
    ++entries;
  }
}

void ObjectDirectory::forget(NodeId from, const Holds& holds) {
  if (names_no_file(holds)) {
    said_all_.insert(from);
    ever_said_.insert(from);
    asked_all_.erase(from);
    for (auto object = away_.begin(); object != away_.end();) {
      object->second.erase(from);
      object = object->second.empty() ? away_.erase(object) : std::next(object);
    }
  }
  for (const Rank rank : holds.ranks) {
    const auto object = objects_.find({holds.version, holds.run, rank, holds.parity});
    if (object == objects_.end()) continue;
    entries_of_[from] -= std::erase(object->second, Holder{from, holds.node});
    if (object->second.empty()) objects_.erase(object);
  }
}

// Some living member has not said all that it holds; it is asked to.
bool ObjectDirectory::waits_for_members() {
  bool waits = false;
  for (NodeId member = 0; member < peers_.members(); ++member) {
    if (member == peers_.self() || said_all_.count(member) != 0 || lost_.count(member) != 0)
      continue;
    waits = true;
    if (asked_all_.insert(member).second) tell(member, Holds{});
  }
  return waits;
}

void ObjectDirectory::answer_waiting() {
  if (unanswered_lookups_.empty() || waits_for_members()) return;
  for (const auto& [from, lookup] : std::exchange(unanswered_lookups_, {})) answer(from, lookup);
}

// Why an object that no living member has may be there all the same; "": it is not.
std::string ObjectDirectory::nobody_else(const Object& wanted) const {
  if (const auto away = away_.find(wanted); away != away_.end()) {
    return fmt::format("only node {} has it, and cannot be reached now",
                       fmt::join(away->second, ", "));
  }
  for (const NodeId member : lost_) {
    if (ever_said_.count(member) == 0)
      return fmt::format("node {} may have it, and cannot be reached now", member);
  }
  return "";
}

void ObjectDirectory::answer(NodeId from, const wire::peer::Lookup& lookup) {
  if (waits_for_members()) {
    unanswered_lookups_.emplace_back(from, lookup);
    return;
  }
  wire::peer::Holders answer{lookup.ticket, {}};
  const Object wanted{lookup.version, lookup.run, lookup.rank, lookup.parity};
  const auto object = objects_.find(wanted);
  if (object != objects_.end()) answer.holders = object->second;
  if (const std::string why = nobody_else(wanted); answer.holders.empty() && !why.empty())
    return peers_.send(from, wire::peer::No{lookup.ticket, Code::agent_lost, why});
  const auto order = [&](const Holder& holder) {
    return std::pair(given_out_[holder.agent], spread(lookup.rank, holder.agent));
  };
  std::sort(answer.holders.begin(), answer.holders.end(),
            [&](const Holder& a, const Holder& b) { return order(a) < order(b); });
  if (!lookup.parity && answer.holders.size() > holders_max) answer.holders.resize(holders_max);
  if (!answer.holders.empty()) ++given_out_[answer.holders.front().agent];
  peers_.send(from, std::move(answer));
}

void ObjectDirectory::lost(NodeId peer, const Error& why) {
  lost_.insert(peer);
  said_all_.erase(peer);
  asked_all_.erase(peer);
  std::erase_if(unanswered_, [peer](const auto& batch) { return batch.second == peer; });
  for (auto object = objects_.begin(); object != objects_.end();) {
    const auto had = std::erase_if(object->second,
                                   [peer](const Holder& holder) { return holder.agent == peer; });
    if (had > 0) away_[object->first].insert(peer);
    object = object->second.empty() ? objects_.erase(object) : std::next(object);
  }
  entries_of_.erase(peer);
  too_many_.erase(peer);
  const Error error(Code::agent_lost, fmt::format("agent {}, which knew who has it, is gone: {}",
                                                  peer, why.message()));
  for (const Found& found : asked_.take_all(peer)) found(error);
  // Barrier 1 needs all: without this one it may never be released.
  const Error unknown(
      Code::agent_lost,
      fmt::format("who has it is not known, as agent {} has not said what it has: {}", peer,
                  why.message()));
  for (const Question& question : std::exchange(waiting_, {})) question.found(unknown);
  answer_waiting();
}

void ObjectDirectory::back(NodeId peer) {
  if (lost_.erase(peer) == 0) return;
  tell(peer, Holds{});  // it shall do the same
  tell_all(peer);
}

}  // namespace backstay::agent
