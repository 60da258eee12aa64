#include "simulated_run/promises.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace backstay::simulated {

std::vector<std::byte> content(VersionOfRun version, Rank rank, std::size_t bytes) {
  std::uint64_t state =
      version.first * 0x9E3779B97F4A7C15u ^ version.second * 31 ^ (std::uint64_t{rank} + 1) << 40;
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return data;
}

void Promises::begin_run(RunId run, std::vector<HostId> hosts, std::uint32_t tolerates,
                         std::vector<std::uint32_t> group_of) {
  if (group_of.empty()) group_of.assign(hosts.size(), 0);
  runs_[run] = {std::move(hosts), tolerates, std::move(group_of)};
}

void Promises::taking(VersionOfRun version, std::vector<std::size_t> bytes) {
  versions_[version].bytes = std::move(bytes);
}

void Promises::announced(VersionOfRun version, Level level) {
  const auto known = versions_.find(version);
  if (known == versions_.end() || known->second.level >= level) return;
  known->second.level = level;
  // Retention may remove what is older and no better.
  for (auto& [older, what] : versions_) {
    if (older.first < version.first && what.level <= level) what.superseded = true;
  }
}

bool Promises::survives(VersionOfRun version, Level level, const std::set<HostId>& hosts) const {
  if (level == Level::durable) return true;
  const Run& run = runs_.at(version.second);
  std::map<std::uint32_t, std::uint32_t> missing;
  std::uint32_t most = 0;
  for (std::size_t node = 0; node < run.hosts.size(); ++node) {
    const bool here = hosts.count(run.hosts[node]) != 0 && lost_.count(run.hosts[node]) == 0;
    if (!here) most = std::max(most, ++missing[run.group_of[node]]);
  }
  return level == Level::protected_ ? most <= run.tolerates : most == 0;
}

Promises::Owed Promises::owed(const std::set<HostId>& hosts) const {
  for (auto at = versions_.rbegin(); at != versions_.rend(); ++at) {
    const Level level = at->second.level;
    if (level < Level::local || at->second.superseded) continue;
    if (survives(at->first, level, hosts)) return {at->first, level};
  }
  return {};
}

std::vector<std::byte> Promises::expected(VersionOfRun version, Rank rank) const {
  const auto known = versions_.find(version);
  if (known == versions_.end() || rank >= known->second.bytes.size()) return {};
  return content(version, rank, known->second.bytes[rank]);
}

std::vector<RunId> Promises::runs() const {
  std::vector<RunId> all;
  for (const auto& [number, run] : runs_) all.push_back(number);
  return all;
}

std::string Promises::describe() const {
  std::string text;
  for (const auto& [number, run] : runs_) {
    text += fmt::format("run {} on hosts {}, tolerates {}\n", number, fmt::join(run.hosts, " "),
                        run.tolerates);
  }
  for (const auto& [key, version] : versions_) {
    text += fmt::format("version {} of run {}: announced {}{}\n", key.first, key.second,
                        static_cast<int>(version.level), version.superseded ? ", superseded" : "");
  }
  return text + fmt::format("disks lost: {}\n", fmt::join(lost_, " "));
}

}  // namespace backstay::simulated
