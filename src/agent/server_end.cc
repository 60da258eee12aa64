// How jobs end in the agent, and the agent itself.
#include <fmt/format.h>

#include <algorithm>

#include "agent/server.h"
#include "agent/server_slot.h"
#include "base/clock.h"
#include "base/log.h"

namespace backstay::agent {

// The end of a job: its thread, its lock, its buffers.
void Server::close_unused_jobs() {
  std::erase_if(slots_, [this](const auto& entry) {
    Slot& slot = *entry.second;
    if (!may_close(slot)) return false;
    spdlog::info("job closed job={} dir={}", slot.job->name(), slot.job->dir());
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
  copies_until_ns_ = system_clock().monotonic_ns() + seconds_to_ns(options_.copy_stop_s);
}

bool Server::drained() const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [](const auto& entry) { return entry.second->job->busy(); });
}

bool Server::copies() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second->job->copying() != 0; });
}

bool Server::undecided() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second->job->undecided(); });
}

bool Server::may_be_decided() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& entry) { return entry.second->job->may_be_decided(); });
}

// Another agent is to come after this one: whoever waits for that has ranks that wait.
Error Server::refusal_while_ending() {
  for (const auto& [number, slot] : slots_) slot->job->hurry();
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
    if (slot->job->undecided()) {
      spdlog::warn(
          "left undecided, as not all nodes have said that they hold it job={}; it counts "
          "only where another node has its record",
          slot->job->name());
    }
    if (slot->job->copying() == 0) continue;
    spdlog::warn(
        "not durable yet, and left so: it is on this node's disk only job={} version={}; the next "
        "run of the job copies it",
        slot->job->name(), slot->job->copying());
  }
}

bool Server::quiet() const {
  return connections_.empty() && drained() && !copies() && !undecided();
}

bool Server::finished() {
  if (stop_now_) return true;
  const std::uint64_t now = system_clock().monotonic_ns();
  if (draining_ && drained() && !copies() && !may_be_decided()) {
    if (!undecided()) return true;
    if (stores_settled()) {  // a record may be on its way to the disk
      say_what_is_not_durable();
      return true;
    }
  }
  if (draining_ && drained() && now >= copies_until_ns_) {
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
  spdlog::info("nobody came for {} s", options_.idle_exit_s);
  begin_drain();
  return drained();
}

// To whoever asked us to end, too: it was promised that captured versions reach the disk first.
void Server::say_what_is_lost() {
  std::vector<std::string> lost;
  for (const auto& [number, slot] : slots_) {
    const auto of_job = slot->job->only_in_memory();
    lost.insert(lost.end(), of_job.begin(), of_job.end());
  }
  if (lost.empty()) return;
  for (const std::string& one : lost)
    spdlog::error("captured, and lost with the agent's memory: {}", one);
  const std::string text = fmt::format("lost with the agent's memory: {}", fmt::join(lost, "; "));
  for (const ConnectionId id : asked_to_end_)
    send(id, wire::Answer{Code::io, text.substr(0, 4000)}, {});
}

}  // namespace backstay::agent
