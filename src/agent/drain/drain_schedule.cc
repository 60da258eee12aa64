#include "agent/drain/drain_schedule.h"

#include "base/check.h"

namespace backstay::agent {

DrainSchedule::DrainSchedule(std::uint32_t files, std::uint32_t at_once) : at_once_(at_once) {
  for (NodeId file = 0; file < files; ++file) {
    files_[file];
    waiting_.insert(file);
  }
}

void DrainSchedule::has(NodeId agent, std::span<const NodeId> files) {
  for (const NodeId file : files) {
    const auto known = files_.find(file);
    if (known != files_.end()) known->second.holders.insert(agent);
  }
}

std::optional<DrainSchedule::Turn> DrainSchedule::next() {
  if (at_once_ != 0 && busy_.size() >= at_once_) return std::nullopt;
  for (const NodeId file : waiting_) {
    const auto agent = agent_for(file);
    if (!agent) continue;
    waiting_.erase(file);
    busy_[*agent] = file;
    ++had_[*agent];
    return Turn{*agent, file};
  }
  return std::nullopt;
}

// Empty where every member that could is at another file, or where it is another's to do.
std::optional<NodeId> DrainSchedule::agent_for(NodeId file) const {
  const std::set<NodeId>& holders = files_.at(file).holders;
  if (holders.count(file) != 0) {
    return busy_.count(file) == 0 ? std::optional(file) : std::nullopt;
  }
  std::optional<NodeId> best;
  std::uint64_t fewest = 0;
  for (const NodeId agent : holders) {
    const auto had = had_.find(agent);
    const std::uint64_t turns = had == had_.end() ? 0 : had->second;
    if (busy_.count(agent) != 0 || (best && turns >= fewest)) continue;
    best = agent;
    fewest = turns;
  }
  return best;
}

void DrainSchedule::done(const Turn& turn) {
  take_back(turn);
  waiting_.erase(turn.file);
  files_[turn.file].done = true;
  ++done_;
}

void DrainSchedule::failed(const Turn& turn) {
  take_back(turn);
  files_[turn.file].holders.erase(turn.agent);
}

void DrainSchedule::take_back(const Turn& turn) {
  const auto busy = busy_.find(turn.agent);
  BACKSTAY_CHECK(busy != busy_.end() && busy->second == turn.file);
  busy_.erase(busy);
  waiting_.insert(turn.file);
}

void DrainSchedule::lost(NodeId agent) {
  if (const auto busy = busy_.find(agent); busy != busy_.end()) take_back({agent, busy->second});
  for (auto& [number, file] : files_) file.holders.erase(agent);
}

std::optional<NodeId> DrainSchedule::missing() const {
  for (const NodeId file : waiting_) {
    if (files_.at(file).holders.empty()) return file;
  }
  return std::nullopt;
}

}  // namespace backstay::agent
