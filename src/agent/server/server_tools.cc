// What tools ask of the agent.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "agent/server/server.h"
#include "agent/server/server_slot.h"
#include "agent/server/status.h"
#include "base/clock.h"

namespace backstay::agent {

namespace {

// One that has ended by itself meanwhile counts too.
bool kill_process(const Fd& process) {
  if (!process.valid()) return false;
#ifdef SYS_pidfd_send_signal
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0) return true;
#endif
  return errno == ESRCH;
}

}  // namespace

void Server::admin_message(ConnectionId id, const wire::Message& message) {
  wire::Answer answer;
  if (std::holds_alternative<wire::Status>(message)) {
    return begin_look(id);
  } else if (const auto* request = std::get_if<wire::Request>(&message)) {
    bool found = false;
    for (auto& [number, slot] : slots_) {
      if (slot->job->name() != request->job || !slot->job->runs()) continue;
      slot->job->request(request->stop);
      found = true;
    }
    if (!found) answer = {Code::not_found, "no program of job " + request->job + " runs here"};
  } else if (const auto* gone = std::get_if<wire::Forget>(&message)) {
    if (const Status status = forget(*gone); !status.ok()) {
      answer = {status.error().code(), status.error().message()};
    }
  } else if (const auto* copied = std::get_if<wire::Copied>(&message)) {
    Slot* slot = open_slot(copied->job, normal_path(copied->dir));
    const Status heard = slot == nullptr
                             ? Error(Code::not_found, "job " + copied->job + " is not open here")
                             : slot->job->copied({copied->version, copied->run});
    if (!heard.ok()) answer = {heard.error().code(), heard.error().message()};
  } else if (const auto* newer = std::get_if<wire::AwaitNewer>(&message)) {
    Slot* slot = open_slot(newer->job, normal_path(newer->dir));
    if (slot != nullptr) return slot->job->await_newer(id, *newer);
    answer = {Code::not_found, "job " + newer->job + " is not open here"};
  } else if (const auto* where = std::get_if<wire::Where>(&message)) {
    const Status begun = begin_look(id, *where);
    if (begun.ok()) return;
    answer = {begun.error().code(), begun.error().message()};
  } else if (const auto* end = std::get_if<wire::EndRanks>(&message)) {
    answer = end_ranks(*end);
  } else if (const auto* shutdown = std::get_if<wire::Shutdown>(&message)) {
    if (!shutdown->drain) stop_now_ = true;
    if (shutdown->drain) asked_to_end_.push_back(id);
    begin_drain();
  } else {
    answer = {Code::invalid, "a tool may not send this message"};
  }
  send(id, std::move(answer), {});
}

Status Server::forget(const wire::Forget& forget) {
  Slot* slot = open_slot(forget.job, normal_path(forget.dir));
  if (slot == nullptr || slot->job->unusable()) {
    return Error(Code::not_found, "job " + forget.job + " is not open here");
  }
  return slot->job->forget(forget.version);
}

// The tool may have seen another run than the one that is here by now.
wire::Answer Server::end_ranks(const wire::EndRanks& end) {
  Slot* slot = open_slot(end.job, normal_path(end.dir));
  if (slot == nullptr || !slot->job->runs()) {
    return {Code::not_found, "no program of job " + end.job + " runs here"};
  }
  const JobState& state = slot->job->state();
  if (state.run != end.run) {
    return {Code::busy, "another run of job " + end.job + " has begun here"};
  }
  nlohmann::json lists{{"ended", nlohmann::json::array()}, {"left", nlohmann::json::array()}};
  for (const auto& [rank, link] : state.links) {
    const bool ended = kill_process(connections_.at(link.connection).process);
    spdlog::warn("rank {} at the wish of a tool job={} rank={} pid={}",
                 ended ? "ended" : "not ended", end.job, rank, link.pid);
    lists[ended ? "ended" : "left"].push_back({{"rank", rank}, {"pid", link.pid}});
  }
  slot->job->taken_over();
  return {Code::ok, lists.dump()};
}

bool Server::Look::done() const {
  return std::ranges::all_of(members, [](const auto& entry) { return entry.second->done; });
}

void Server::begin_look(ConnectionId tool) {
  Look look{.tool = tool, .where = {}, .members = {}};
  const std::size_t most = StatusPoll::asked_max / std::max<std::size_t>(slots_.size(), 1);
  for (auto& [number, slot] : slots_) look.members[number] = slot->job->look(most);
  looks_.push_back(std::move(look));
}

// Where two runs used the number, of the one that a restart would take.
Status Server::begin_look(ConnectionId tool, const wire::Where& where) {
  const Slot* slot = open_slot(where.job, normal_path(where.dir));
  if (slot == nullptr) return Error(Code::not_found, "job " + where.job + " is not open here");
  const VersionRow* version = slot->job->state().versions.find(where.version);
  if (version == nullptr || !version->good()) {
    return Error(Code::not_found,
                 fmt::format("{} has no complete version {} here", where.job, where.version));
  }
  const format::CommitRecord& record = version->disk->record;
  if (record.nodes > 1 && !slot->job->knows_others()) {
    return Error(Code::unsupported,
                 fmt::format("version {} is of {} nodes, and its agent here knows of no other now",
                             record.version, record.nodes));
  }
  Look look{tool, record, slot->job->level_of(record.version).level, {}};
  for (const auto& [number, other] : slots_) {
    if (other.get() == slot) {
      look.members[number] = other->job->look(StatusPoll::asked_max, {record.version, record.run});
    }
  }
  looks_.push_back(std::move(look));
  return {};
}

void Server::answer_looks() {
  std::erase_if(looks_, [this](const Look& look) {
    if (!look.done()) return false;
    const std::string text = look.where
                                 ? to_json(*look.where, look.level, *look.members.begin()->second)
                                 : status_json(look);
    send(look.tool, wire::Answer{Code::ok, text}, {});
    return true;
  });
}

StatusInput Server::status_input() const {
  StatusInput input;
  input.socket_path = options_.socket_path;
  input.uptime_s = 1e-9 * static_cast<double>(system_clock().monotonic_ns() - started_ns_);
  input.pool = pool_.get();
  input.traffic = traffic_;
  for (const auto& [number, slot] : slots_) input.jobs.push_back({slot->job.get(), nullptr});
  if (metrics_) {
    input.metrics_at = fmt::format("{}:{}", options_.metrics_address, options_.metrics_port);
  }
  input.metrics_error = metrics_error_;
  const std::lock_guard lock(disk_facts_->mutex);
  input.disk = disk_facts_->facts;
  return input;
}

std::string Server::status_json(const Look& look) const {
  StatusInput input = status_input();
  auto job = input.jobs.begin();
  for (const auto& [number, slot] : slots_) {  // the same in the same order
    const auto members = look.members.find(number);
    if (members != look.members.end()) job->members = members->second.get();
    ++job;
  }
  return to_json(input);
}

}  // namespace backstay::agent
