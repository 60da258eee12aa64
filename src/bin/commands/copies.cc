#include "bin/commands/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/parity_shape.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t nodes_max = 3'000'000;  // survival_of() takes no more
constexpr std::uint64_t living_max = 128;       // where there is parity

// All members of a group name it alike; it begins with the first that answers.
void add_parity(NodeId node, const Json& parity, Copies& copies) {
  const auto group = parity.at("group").get<std::vector<NodeId>>();
  const auto blocks = parity.at("blocks").get<std::uint32_t>();
  const auto place = std::ranges::find(group, parity.at("of").get<NodeId>());
  const auto names_no_segment = [&](NodeId one) { return one >= copies.holders.size(); };
  const bool each_once = std::set(group.begin(), group.end()).size() == group.size();
  if (std::ranges::any_of(group, names_no_segment) || place == group.end() || !each_once ||
      group.size() > shape_members_max || blocks >= group.size())
    throw Json::out_of_range::create(401, "parity", &parity);
  auto known = std::ranges::find(copies.parity, group, &protect::ParityThere::segments);
  if (known == copies.parity.end())
    known = copies.parity.insert(known,
                                 {group, blocks, std::vector<std::vector<NodeId>>(group.size())});
  known->holders[static_cast<std::size_t>(place - group.begin())].push_back(node);
}

// Only the node's own disk keeps a version from level local; for higher levels it may be another
// node's. A full disk still gives what it has.
bool disk_fails(const Json& member) {
  return member.at("lacks_level") == level_name(Level::local) &&
         member.at("lacks_code") != code_name(Code::no_space);
}

void add_member(const Json& member, Copies& copies, std::vector<bool>& alive) {
  const auto node = member.at("node").get<NodeId>();
  if (node >= nodes_max) throw Json::out_of_range::create(401, "node", &member);
  if (node >= alive.size()) alive.resize(node + 1, false);
  if (member.at("state") != "ok") return copies.silent.push_back(node);
  alive[node] = true;
  ++copies.living;
  for (const auto& file : member.at("files")) {
    copies.holders.at(file.get<std::size_t>()).push_back(node);
  }
  if (const Json& parity = member.at("parity"); !parity.is_null()) add_parity(node, parity, copies);
  if (const auto blockers = member.value("lacks", ""); !blockers.empty()) {
    copies.warnings.push_back(fmt::format("node {}: {}", node, blockers));
    if (disk_fails(member)) copies.troubled.push_back(node);
  }
}

protect::Survival survival_with(const Copies& copies, const std::vector<bool>& alive) {
  return copies.parity.empty() ? protect::survival_of(copies.holders, alive)
                               : protect::survival_of(copies.holders, copies.parity, alive);
}

Copies read(const Json& answer) {
  Copies copies;
  copies.durable = answer.at("level") == "durable";
  copies.not_asked = answer.at("members_left_out").get<std::uint64_t>();
  const auto nodes = answer.at("nodes").get<std::uint64_t>();
  if (nodes > nodes_max) throw Json::out_of_range::create(401, "nodes", &answer);
  copies.holders.resize(nodes);
  std::vector<bool> alive;
  for (const Json& member : answer.at("members")) add_member(member, copies, alive);
  if (!copies.parity.empty() && copies.living > living_max)
    throw Json::out_of_range::create(401, "members", &answer);
  copies.survival = survival_with(copies, alive);
  if (copies.troubled.empty()) return copies;
  for (const NodeId node : copies.troubled) alive[node] = false;
  copies.sure = survival_with(copies, alive);
  return copies;
}

std::string nodes_text(const std::vector<NodeId>& nodes) {
  constexpr std::size_t shown = 8;
  if (nodes.size() <= shown)
    return fmt::format("node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
  return fmt::format("nodes {} and {} more", fmt::join(nodes.begin(), nodes.begin() + shown, ", "),
                     nodes.size() - shown);
}

}  // namespace

Result<Copies> copies_of(const Json& answer) {
  try {
    return read(answer);
  } catch (const std::exception& wrong) {
    return Error(Code::protocol, fmt::format("the agent's answer is not understood: {}; agent and "
                                             "tool may be of different releases",
                                             wrong.what()));
  }
}

namespace {

// True if a last node would have the version, but not all of its files: agents rebuild from parity
// together.
bool would_need_a_second(const Copies& copies) {
  const auto& of_nodes = copies.survival.of_nodes;
  if (copies.parity.empty() || copies.living < 2 || copies.living - 2 >= of_nodes.size())
    return false;
  std::map<NodeId, std::size_t> files;
  for (const auto& of_file : copies.holders) {
    for (const NodeId holder : of_file) ++files[holder];
  }
  const auto with_all = static_cast<std::uint64_t>(std::ranges::count_if(
      files, [&](const auto& node) { return node.second == copies.holders.size(); }));
  const protect::LossCount& all_but_one = of_nodes.at(copies.living - 2);
  return all_but_one.sets - all_but_one.fatal > with_all;
}

std::string survival_line(const protect::Survival& survival, std::uint64_t living,
                          std::string_view which, std::string_view the_only) {
  if (!survival.gone.empty())
    return fmt::format("not whole on the nodes that {}: no node has the file of {}", which,
                       nodes_text(survival.gone));
  if (living == 1) return fmt::format("on {} only: its loss would lose the version", the_only);
  return "survives the loss of " + survival.text();
}

std::string sure_line(const Copies& copies) {
  const bool one = copies.troubled.size() == 1;
  return fmt::format(
      "should the disk{} of {} not give back what {}: {}", one ? "" : "s",
      nodes_text(copies.troubled), one ? "it has" : "they have",
      survival_line(copies.sure, copies.living - copies.troubled.size(), "are left", "one node"));
}

}  // namespace

std::vector<std::string> survival_lines(const Copies& copies) {
  const bool whole = copies.survival.gone.empty();
  std::vector<std::string> lines{
      survival_line(copies.survival, copies.living, "answered", "this node")};
  if (whole && would_need_a_second(copies))
    lines.emplace_back("with one node left a restart needs a second one, which may be empty");
  for (const std::string& trouble : copies.warnings)
    lines.push_back(trouble + " (what it keeps is counted)");
  if (whole && !copies.troubled.empty()) lines.push_back(sure_line(copies));
  if (!copies.silent.empty())
    lines.push_back(nodes_text(copies.silent) + " did not answer: what is there is not counted");
  if (copies.not_asked > 0)
    lines.push_back(fmt::format("{} more node{} not asked: what is there is not counted",
                                copies.not_asked, copies.not_asked == 1 ? " was" : "s were"));
  if (copies.durable)
    lines.emplace_back("also in the durable directory: comes back after the loss of all nodes");
  return lines;
}

namespace {

Json losses_json(const protect::Survival& survival) {
  Json losses = Json::array();
  for (std::size_t i = 0; i < survival.of_nodes.size(); ++i) {
    const protect::LossCount& count = survival.of_nodes.at(i);
    losses.push_back({{"nodes", i + 1},
                      {"sets", count.sets},
                      {"fatal", count.fatal},
                      {"example", count.example}});
  }
  return losses;
}

}  // namespace

Json survival_json(const Copies& copies) {
  Json json{{"durable", copies.durable},    {"holders", copies.holders},
            {"gone", copies.survival.gone}, {"losses", losses_json(copies.survival)},
            {"silent", copies.silent},      {"not_asked", copies.not_asked},
            {"troubles", copies.warnings},  {"without_troubled", nullptr}};
  if (!copies.troubled.empty())
    json["without_troubled"] = {{"gone", copies.sure.gone}, {"losses", losses_json(copies.sure)}};
  return json;
}

}  // namespace backstay::bin
