#include "client/other_settings.h"

#include <fmt/format.h>

#include <map>

namespace backstay::client {

std::string other_settings(const Config& own, const std::vector<wire::Setting>& agents,
                           bool several_nodes) {
  const auto initial = parse_config("", "");
  if (!initial.ok()) return "";  // cannot be
  std::map<std::string, std::string> ours;
  for (auto& [key, value] : agent_settings(own)) ours[key] = value;
  for (const auto& [key, value] : agent_settings(*initial)) {
    const bool between_nodes = key.starts_with("network.") || key.starts_with("protect.");
    if (ours[key] == value || (between_nodes && !several_nodes)) ours.erase(key);
  }
  std::string differ;
  for (const wire::Setting& theirs : agents) {
    const auto found = ours.find(theirs.key);
    if (found == ours.end() || found->second == theirs.value) continue;
    differ += fmt::format("{}{} is {} there, {} here", differ.empty() ? "" : "; ", theirs.key,
                          theirs.value, found->second);
  }
  if (differ.empty()) return "";
  return fmt::format(
      "the agent was started with other settings, which count until it ends: {}. For those of this "
      "program, end it (backstay agent stop) when no program uses it (backstay status), and start "
      "again",
      differ);
}

}  // namespace backstay::client
