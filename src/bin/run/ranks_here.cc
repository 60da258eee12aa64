#include "bin/run/ranks_here.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/machine.h"
#include "bin/parts/agent_link.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr double answer_s = 5;  // the agent may ask other agents first, which have a second
constexpr double notice_s = 2;  // as in client/attach.cc: until an agent has noticed an end
constexpr double end_s = 6;     // until the kernel has ended a process with much memory

Result<RunId> run_of(const std::string& text) {
  RunId run = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), run, 16);
  if (failure != std::errc() || end != text.data() + text.size())
    return Error(Code::invalid, "'" + text + "' is no run: a run is 16 hexadecimal digits");
  return run;
}

bool has_ranks(const Json& found) {
  return found.is_object() && !found.value("processes", Json::array()).empty();
}

// The job's status once it has no ranks of this run any more ("": of any run), or when the time is
// over.
Json wait_for_end(const Config& config, const std::string& job, const std::string& run,
                  double patience_s) {
  const std::uint64_t deadline = deadline_in(patience_s);
  for (;;) {
    Json found = job_in_agent(config, job, config.storage.dir, answer_s);
    const bool meant = run.empty() || (found.is_object() && found.value("run", "") == run);
    if (!has_ranks(found) || !meant) return nullptr;
    if (system_clock().monotonic_ns() >= deadline) return found;
    ::poll(nullptr, 0, 50);
  }
}

}  // namespace

Json ranks_here(const Config& config, const std::string& job) {
  const Json found = wait_for_end(config, job, "", notice_s);
  Json answer{{"host", host_name()}};
  for (const char* key : {"run", "nodes", "processes", "members"})
    answer[key] = found.is_object() ? found.value(key, Json()) : Json();
  if (found.is_null()) answer["processes"] = answer["members"] = Json::array();
  return answer;
}

Result<Json> end_ranks_here(const Config& config, const std::string& job, const std::string& run) {
  BACKSTAY_ASSIGN(const RunId number, run_of(run));
  BACKSTAY_ASSIGN(AgentLink agent, AgentLink::connect(config, answer_s));
  const auto answer = agent.ask(wire::EndRanks{job, config.storage.dir, number});
  if (!answer.ok() && answer.error().code() == Code::not_found)  // those of other hosts were first
    return Json{{"ended", Json::array()}, {"left", Json::array()}};
  if (!answer.ok()) return answer.error();
  const Json found = wait_for_end(config, job, run, end_s);
  const Json left = found.is_object() ? found.value("processes", Json::array()) : Json::array();
  Json ended = Json::array();
  for (const Json& process : answer->value("ended", Json::array()))
    if (std::find(left.begin(), left.end(), process) == left.end()) ended.push_back(process);
  return Json{{"ended", std::move(ended)}, {"left", left}};
}

}  // namespace backstay::bin
