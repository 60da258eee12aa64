// How jobs end in the agent, and the agent itself.
#include <fmt/format.h>

#include <algorithm>

#include "agent/server/server.h"
#include "agent/server/server_slot.h"
#include "base/clock.h"
#include "base/log.h"

namespace backstay::agent {

// The end of a job: its thread, its lock, its buffers.
void Server::close_unused_jobs() {
  std::erase_if(slots_, [this](const auto& entry) {
    Slot& slot = *entry.second;
    if (!may_close(slot)) return false;
    spdlog::info("job closed job={} dir={}", slot.job->name(), slot.job->state().dir);
    slot.job->close();
    return true;
  });
}

bool Server::in_use(const Job& job) const {
  return !job.unused() ||
         std::any_of(connections_.begin(), connections_.end(),
                     [&job](const auto& entry) { return entry.second.job == &job; });
}

bool Server::may_close(Slot& slot) {
  if (in_use(*slot.job)) {
    slot.unused_since_ns = 0;
    return false;
  }
  if (slot.job->unusable()) return true;
  const std::uint64_t now = system_clock().monotonic_ns();
  if (slot.unused_since_ns == 0) slot.unused_since_ns = now;
  const bool idle = now - slot.unused_since_ns >= seconds_to_ns(options_.job_idle_s);
  if (slot.job->keeps_versions() && !idle) return false;
  return slot.settled();
}

void Server::begin_drain() {
  if (draining_) return;
  spdlog::info("agent ends; brings captured versions to disk first");
  draining_ = true;
  for (const auto& [number, slot] : slots_) slot->job->last_try();
}

bool Server::drained() const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [](const auto& entry) { return entry.second->job->busy(); });
}

bool Server::copies() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second->job->copying() != 0; });
}

bool Server::in_doubt() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second->job->in_doubt(); });
}

bool Server::may_be_decided() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second->job->may_be_decided(); });
}

Error Server::refusal_while_ending() const {
  const char* first = "it brings versions to the disk";
  if (drained() && may_be_decided()) first = "it waits for other nodes to bring theirs to the disk";
  if (drained() && copies()) first = "it copies a version to the durable directory";
  return {Code::again, fmt::format("the agent is being stopped; {} first", first)};
}

// All of them are asked, each by itself.
bool Server::stores_settled() {
  bool all = true;
  for (const auto& [number, slot] : slots_) all = slot->settled() && all;
  return all;
}

void Server::say_what_is_not_durable() const {
  for (const auto& [number, slot] : slots_) {
    for (const std::string& one : slot->job->left_in_doubt())
      spdlog::warn("left undecided: {} job={}", one, slot->job->name());
    if (slot->job->copying() == 0) continue;
    spdlog::warn(
        "not durable yet, and left so: it is on this node's disk only job={} version={}; the next "
        "run of the job copies it",
        slot->job->name(), slot->job->copying());
  }
}

bool Server::quiet() const { return connections_.empty() && drained() && !copies() && !in_doubt(); }

bool Server::finished() {
  if (stop_now_) return true;
  const std::uint64_t now = system_clock().monotonic_ns();
  // Others may be as slow as this node's disk was: their time begins where its own ends.
  if (draining_ && drained() && waits_until_ns_ == 0)
    waits_until_ns_ = now + seconds_to_ns(options_.copy_stop_s);
  if (draining_ && drained() && !copies() && !may_be_decided()) {
    if (!in_doubt()) return true;
    if (stores_settled()) {  // a record may be on its way to the disk
      say_what_is_not_durable();
      return true;
    }
  }
  if (draining_ && drained() && now >= waits_until_ns_) {
    say_what_is_not_durable();
    stop_now_ = true;  // shared storage may hang, and its thread with it
    return true;
  }
  if (!quiet()) {
    quiet_since_ns_ = now;
    return false;
  }
  if (unreachable_) return true;
  if (options_.idle_exit_s <= 0) return false;
  if (now - quiet_since_ns_ < seconds_to_ns(options_.idle_exit_s)) return false;
  spdlog::info("idle for {} s, shutting down", options_.idle_exit_s);
  begin_drain();
  return drained();
}

// Answers the tool that asked for the end, too: it was promised that captured versions reach the
// disk first.
void Server::say_what_is_lost() {
  std::vector<std::string> lost;
  std::vector<std::string> in_doubt;
  for (const auto& [number, slot] : slots_) {
    const auto of_job = slot->job->only_in_memory();
    lost.insert(lost.end(), of_job.begin(), of_job.end());
    const auto left = slot->job->left_in_doubt();
    in_doubt.insert(in_doubt.end(), left.begin(), left.end());
  }
  for (const std::string& one : lost)
    spdlog::error("captured, and lost with the agent's memory: {}", one);
  if (!in_doubt.empty()) tell_who_asked(Code::agent_lost, "left undecided: ", in_doubt);
  if (!lost.empty()) tell_who_asked(Code::io, "lost with the agent's memory: ", lost);
}

void Server::tell_who_asked(Code code, const char* what, const std::vector<std::string>& versions) {
  constexpr std::size_t most = 4000;
  const std::string text = fmt::format("{}{}", what, fmt::join(versions, "; "));
  for (const ConnectionId id : asked_to_end_)
    send(id, wire::Answer{code, text.substr(0, most)}, {});
}

}  // namespace backstay::agent
