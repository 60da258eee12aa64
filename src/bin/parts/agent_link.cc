#include "bin/parts/agent_link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bin/parts/print.h"
#include "wire/socket.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

// A tool that is silent for longer than this would seem to hang.
constexpr double remark_after_s = 2;

timeval as_timeval(double seconds) {
  const auto us = static_cast<std::int64_t>(seconds * 1e6);
  return {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
}

Result<Json> parsed(const std::string& text) {
  auto document = Json::parse(text, nullptr, false);
  if (!document.is_object())
    return Error(Code::protocol, "the agent's answer is not what this release expects");
  return document;
}

}  // namespace

Result<AgentLink> AgentLink::connect(const Config& config, double patience_s) {
  const std::string path = wire::socket_path(config.agent.socket);
  auto socket = wire::connect_to(path);
  if (!socket.ok()) {
    const Code code = socket.error().code();
    if (code != Code::not_found && code != Code::agent_lost) return socket.error();
    if (!uses_agents(config)) {
      return Error(Code::agent_lost,
                   fmt::format("no agent runs at {}: strategy.name is \"{}\", and the ranks save "
                               "their versions by themselves; SIGUSR1 to the program asks for a "
                               "checkpoint, and `backstay ls` lists what there is",
                               path, config.strategy.name));
    }
    return Error(Code::agent_lost,
                 fmt::format("no agent runs at {}; a program starts one by itself, "
                             "`backstay agent start` does it now",
                             path));
  }
  // An agent that hangs must not hang the tool.
  patience_s = std::clamp(patience_s, 0.1, answer_timeout_s);
  const timeval limit = as_timeval(patience_s);
  ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  BACKSTAY_TRY(wire::send(socket->get(), wire::Admin{}));
  const int pid = wire::pid_of_peer(socket->get());
  return AgentLink(std::move(socket).value(), path, pid, patience_s);
}

Status AgentLink::tell(const wire::Message& question) {
  BACKSTAY_TRY(wire::send(socket_.get(), question));
  BACKSTAY_TRY(answer());
  return {};
}

Result<Json> AgentLink::ask(const wire::Message& question) {
  BACKSTAY_TRY(wire::send(socket_.get(), question));
  BACKSTAY_ASSIGN(const std::string text, answer());
  return parsed(text);
}

Result<std::string> AgentLink::answer() {
  if (patience_s_ > remark_after_s && !wait_readable(socket_.get(), deadline_in(remark_after_s)))
    remark(fmt::format("the agent (pid {}) has not answered yet; waiting {} s at most", pid_,
                       patience_s_));
  for (;;) {
    auto received = wire::receive(socket_.get());
    if (!received.ok() && received.error().code() == Code::again)
      return Error(
          Code::agent_lost,
          fmt::format("the agent at {} (pid {}) has not answered within {} s: it hangs; `kill "
                      "-9 {}` ends it, the next program starts another one, and captured "
                      "versions that are not on the disk are lost",
                      path_, pid_, patience_s_, pid_));
    if (!received.ok()) return received.error().context("ask the agent at " + path_);
    if (const auto* answer = std::get_if<wire::Answer>(&received->message)) {
      if (answer->code == Code::ok) return answer->json;
      const auto parsed = nlohmann::json::parse(answer->json, nullptr, false);
      const std::string text = parsed.is_object() ? parsed.value("message", "") : answer->json;
      return Error(answer->code, text.empty() ? "the agent refused" : text);
    }
    if (const auto* failure = std::get_if<wire::Failure>(&received->message))
      return Error(failure->code, failure->message);
  }
}

Result<Json> AgentLink::await_newer(const wire::AwaitNewer& version, double timeout_s) {
  BACKSTAY_TRY(wire::send(socket_.get(), version));
  if (!wait_readable(socket_.get(), deadline_in(timeout_s))) {
    return Error(Code::timeout, fmt::format("no new version of {} is on the disk after {}; "
                                            "`backstay status` says why an unmodified program "
                                            "is not saved, another one answers at its next "
                                            "backstay_due()",
                                            version.job, duration_text(timeout_s)));
  }
  BACKSTAY_ASSIGN(const std::string text, answer());
  return parsed(text);
}

Result<Json> agent_status(const Config& config, double patience_s) {
  BACKSTAY_ASSIGN(AgentLink agent, AgentLink::connect(config, patience_s));
  return agent.ask(wire::Status{});
}

Json job_of(const Json& status, const std::string& job, const std::string& dir) {
  for (const Json& one : status.value("jobs", Json::array()))
    if (one.value("job", "") == job && (dir.empty() || one.value("dir", "") == dir)) return one;
  return nullptr;
}

Json job_in_agent(const Config& config, const std::string& job, const std::string& dir,
                  double patience_s) {
  const auto status = agent_status(config, patience_s);
  return status.ok() ? job_of(*status, job, dir) : Json();
}

std::vector<Json> versions_of(const Json& job) {
  return job.is_null() ? std::vector<Json>{} : job.value("versions", std::vector<Json>{});
}

Status AgentLink::wait_until_gone(double timeout_s) {
  const std::uint64_t deadline = deadline_in(timeout_s);
  // Its jobs are locked until it has ended.
  const wire::PeerProcess process = wire::process_of_peer(socket_.get());
  Status last;
  while (wait_readable(socket_.get(), deadline)) {
    const auto received = wire::receive(socket_.get());
    if (!received.ok() && received.error().code() != Code::again) {
      if (!process.process.valid() || wait_readable(process.process.get(), deadline)) return last;
      break;
    }
    if (!received.ok()) continue;
    const auto* answer = std::get_if<wire::Answer>(&received->message);
    if (answer != nullptr && answer->code != Code::ok) last = Error(answer->code, answer->json);
  }
  return Error(Code::timeout,
               fmt::format("the agent (pid {}) has not ended yet, it may still be writing; "
                           "`backstay agent stop --now` does not wait for that",
                           pid_));
}

}  // namespace backstay::bin
