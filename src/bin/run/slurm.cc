#include "bin/run/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "bin/parts/spawn.h"

namespace backstay::bin {
namespace {

constexpr double answer_s = 30;
constexpr unsigned last_to_look = 3;  // not all of a thousand nodes at once
constexpr unsigned repeats_max = 1'000'000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

unsigned number(const char* name) {
  return static_cast<unsigned>(std::strtoul(variable(name).c_str(), nullptr, 10));
}

}  // namespace

bool in_slurm() { return !variable("SLURM_JOB_ID").empty(); }

std::vector<unsigned> parse_counts(const std::string& text) {
  std::vector<unsigned> counts;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    unsigned count = 0;
    unsigned repeats = 1;
    const int read = std::sscanf(part.c_str(), "%u(x%u)", &count, &repeats);
    if (read < 1 || count == 0 || repeats > repeats_max) return {};
    counts.insert(counts.end(), repeats, count);
  }
  return counts;
}

Result<std::vector<std::string>> slurm_nodes(const std::string& list) {
  const auto text = run_and_read({"scontrol", "show", "hostnames", list}, answer_s);
  if (!text.ok()) return text.error().context("the nodes of the allocation");
  std::vector<std::string> names;
  std::istringstream words(*text);
  for (std::string name; words >> name;) names.push_back(name);
  return names;
}

Result<std::vector<Host>> slurm_hosts() {
  BACKSTAY_ASSIGN(const auto names, slurm_nodes(variable("SLURM_JOB_NODELIST")));
  const auto cpus = parse_counts(variable("SLURM_JOB_CPUS_PER_NODE"));
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < names.size(); ++i)
    hosts.push_back({names[i], i < cpus.size() ? cpus[i] : 0, ""});
  return hosts;
}

unsigned slurm_tasks() { return number("SLURM_NTASKS"); }

unsigned slurm_tasks_per_node() { return number("SLURM_NTASKS_PER_NODE"); }

Status slurm_requeue() {
  const std::string job = variable("SLURM_JOB_ID");
  BACKSTAY_ASSIGN(const std::string state,
                  run_and_read({"squeue", "-h", "-j", job, "-o", "%T"}, answer_s));
  if (!state.starts_with("RUNNING"))
    return Error(Code::state, fmt::format("job {} is {}", job, state.substr(0, state.find('\n'))));
  const auto done = run_and_read({"scontrol", "requeue", job}, answer_s);
  return done.ok() ? Status() : Status(done.error());
}

bool slurm_lost_first_node() {
  if (number("SLURM_PROCID") > last_to_look) return false;
  const auto all = slurm_nodes(variable("SLURM_JOB_NODELIST"));
  const auto left =
      run_and_read({"squeue", "-h", "-j", variable("SLURM_JOB_ID"), "-o", "%N"}, answer_s);
  if (!all.ok() || all->empty() || !left.ok()) return false;
  const auto nodes = slurm_nodes(left->substr(0, left->find('\n')));
  return nodes.ok() && !nodes->empty() &&
         std::find(nodes->begin(), nodes->end(), all->front()) == nodes->end();
}

}  // namespace backstay::bin
