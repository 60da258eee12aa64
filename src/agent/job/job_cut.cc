// A job's cuts (docs/protocol/cut.md): what CutRelay hears and what it orders.
#include <nlohmann/json.hpp>

#include "agent/job/job.h"
#include "base/log.h"
#include "base/machine.h"

namespace backstay::agent {

void Job::begin_cuts() {
  const MemberId& self = commit_coordinator_.run_membership()->facts().self;
  cuts_ = std::make_unique<CutRelay>(CutFacts{state_.node, host_name(), state_.nodes, state_.ranks,
                                              state_.local_ranks, self.incarnation});
  capture_.hold(0);  // nothing of the run before
}

CutRelay* Job::cuts() {
  const RunMembership* run_membership = commit_coordinator_.run_membership();
  if (!cuts_ || run_membership == nullptr) return nullptr;
  cuts_->see(run_membership->links(), run_membership->present(), state_.newest,
             state_.clock.monotonic_ns());
  return cuts_.get();
}

std::optional<CutRelay::UnderWay> cut_under_way(const Job& job) {
  return job.cuts_ ? job.cuts_->under_way(job.state_.clock.monotonic_ns()) : std::nullopt;
}

std::optional<Status> Job::cut_message(Rank rank, const wire::Message& message) {
  CutRelay* relay = cuts();
  auto taken = relay == nullptr ? std::nullopt : relay->receive(rank, message);
  carry_out_cuts();
  return taken;
}

void Job::carry_out_cuts() {
  if (!cuts_) return;
  for (const CutOutput& output : cuts_->take()) {
    std::visit([this](const auto& one) { carry_out(one); }, output);
  }
}

void Job::carry_out(const TellRank& it) {
  const auto link = state_.links.find(it.rank);
  if (link != state_.links.end()) state_.outbox.send(link->second.connection, it.message);
}

void Job::carry_out(const TellAgent& it) {
  commit_coordinator_.run_membership()->peers().send(it.node, it.message);
}

void Job::carry_out(const CutBegan& it) {
  spdlog::info("cut begins job={} cut={}", state_.name, it.cut);
  state_.record("cut_begin", {{"cut", it.cut}});
}

void Job::carry_out(const CutGivenUp& it) {
  if (it.version != 0) capture_.give_up(it.version, Error(it.code, it.why));
  state_.take_refusal(Code::again, it.why);
}

void Job::carry_out(const CutEnded& it) {
  const bool saved = it.how.code == Code::ok;
  spdlog::info("cut ends job={} cut={} saved={} seconds={:.3f} why=\"{}\"", state_.name, it.how.cut,
               saved, it.seconds, it.how.message);
  state_.record("cut_end", {{"cut", it.how.cut},
                            {"saved", saved},
                            {"code", code_name(it.how.code)},
                            {"why", it.how.message},
                            {"seconds", it.seconds}});
}

}  // namespace backstay::agent
