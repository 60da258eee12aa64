// The program of a simulated run: how its ranks restart.
#include <fmt/format.h>

#include <algorithm>

#include "simulated_run/run.h"

namespace backstay::simulated {

namespace {

// A version that cannot be had; an older one may (client/restart_loop.cc).
bool passable(Code code) {
  return code == Code::corrupt || code == Code::not_found || code == Code::io ||
         code == Code::format || code == Code::lost;
}

}  // namespace

Result<SimulatedRun::Candidate> SimulatedRun::newest_below(VersionOfRun below) {
  for (const auto& one : ranks_) one->ask_for_candidate({below.first, below.second});
  const bool all = run_until("candidates", [&] {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& one) { return one->candidate().has_value(); });
  });
  if (!all) return Error(Code::agent_lost, "an agent is gone");
  Candidate best;
  for (const auto& one : ranks_) {
    const wire::Candidate& offer = *one->candidate();
    if (offer.version == 0 && offer.code != Code::none) return Error(offer.code, offer.message);
    if (offer.version == 0 || offer.version < best.version.first) continue;
    const bool newer = offer.version > best.version.first;
    if (offer.code != Code::ok) {
      if (newer) best = {{offer.version, 0}, 0, Error(offer.code, offer.message)};
    } else if (newer || best.damage || offer.run > best.version.second) {
      best = {{offer.version, offer.run}, offer.saved_ranks, std::nullopt};
    }
  }
  if (best.version.first == 0) return Error(Code::none, "there is no version");
  return best;
}

Status SimulatedRun::take(VersionOfRun version) {
  for (const auto& one : ranks_) one->restart({version.first, version.second});
  const auto settled = [&] {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& one) { return one->ready() || one->restored(); });
  };
  if (!run_until("verified", settled)) return Error(Code::agent_lost, "an agent is gone");
  Status agreed;
  for (const auto& one : ranks_) {
    if (one->restored() && agreed.ok()) agreed = *one->restored();
  }
  for (const auto& one : ranks_) {
    if (one->ready()) one->proceed(agreed.ok());
  }
  const auto ended = [&] {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& one) { return one->restored().has_value(); });
  };
  if (!run_until("restored", ended)) return Error(Code::agent_lost, "an agent is gone");
  for (const auto& one : ranks_) {
    if (agreed.ok() && !one->restored()->ok()) return *one->restored();
  }
  return agreed;
}

bool SimulatedRun::restart() {
  ++counts_.restarts;
  const Promises::Owed owed = promises_.owed({nodes_.begin(), nodes_.end()});
  for (VersionOfRun below;;) {
    const auto newest = newest_below(below);
    if (!newest.ok()) {
      if (newest.error().code() == Code::agent_lost) return agent_died_;
      if (owed.version.first != 0) {
        fail(fmt::format(
            "version {} of run {} was announced at level {}, and does not come back: {}",
            owed.version.first, owed.version.second, static_cast<int>(owed.level),
            newest.error().message()));
      }
      say("no version: " + newest.error().message());
      return broken_.empty();
    }
    below = newest->version;
    Status taken = newest->damage ? Status(*newest->damage) : Status();
    if (taken.ok()) taken = take(newest->version);
    if (taken.ok()) return restarted_from(newest->version);
    if (taken.error().code() == Code::agent_lost) return agent_died_;
    say(fmt::format("version {} of run {} skipped: {}", below.first, below.second,
                    taken.error().message()));
    ++counts_.from_older;
    if (!passable(taken.error().code())) {
      fail("a restart ends with " + taken.error().message());
      return false;
    }
    if (below.first <= owed.version.first) {
      fail(fmt::format("version {} of run {} was announced at level {}, and does not come back: {}",
                       owed.version.first, owed.version.second, static_cast<int>(owed.level),
                       taken.error().message()));
      return false;
    }
  }
}

bool SimulatedRun::restarted_from(VersionOfRun version) {
  say(fmt::format("restarted from version {} of run {}", version.first, version.second));
  restarted_from_ = latest_ = version;
  captured_ = offered(version);
  const Promises::Owed owed = promises_.owed({nodes_.begin(), nodes_.end()});
  if (version.first < owed.version.first) {
    fail(fmt::format("version {} of run {} was announced at level {}, and version {} came back",
                     owed.version.first, owed.version.second, static_cast<int>(owed.level),
                     version.first));
  }
  for (const auto& one : ranks_) {
    if (one->object() != promises_.expected(version, one->number()))
      fail(fmt::format("wrong bytes in version {} of rank {}", version.first, one->number()));
  }
  return broken_.empty();
}

// One node: its agent finds the version, and ranks have nothing to agree upon.
bool SimulatedRun::restart_alone() {
  ++counts_.restarts;
  const Promises::Owed owed = promises_.owed({nodes_.begin(), nodes_.end()});
  for (const auto& one : ranks_) one->restart({});
  const bool ended = run_until("restarted", [&] {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& one) { return one->restored().has_value(); });
  });
  if (!ended || agent_died_) return agent_died_;
  const Status& outcome = *ranks_[0]->restored();
  if (outcome.ok()) {
    for (const RunId run : promises_.runs()) {
      const VersionOfRun version{ranks_[0]->plan().version, run};
      if (promises_.expected(version, 0) == ranks_[0]->object()) return restarted_from(version);
    }
    fail(fmt::format("wrong bytes in version {}", ranks_[0]->plan().version));
    return false;
  }
  if (owed.version.first != 0) {
    fail(fmt::format("version {} of run {} was announced at level {}, and does not come back: {}",
                     owed.version.first, owed.version.second, static_cast<int>(owed.level),
                     outcome.error().message()));
  }
  say("no version: " + outcome.error().message());
  return broken_.empty();
}

}  // namespace backstay::simulated
