#include "history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/log.h"

namespace backstay::crash {

namespace {
constexpr std::size_t kept = 2;  // what a run asks for by default (wire::Hello)
constexpr unsigned steps_max = 200'000;

// Thousands of agents that meet faults have much to say; BACKSTAY_CRASH_LOG=1 to hear one of them.
[[maybe_unused]] const bool quiet = [] {
  if (from_environment("BACKSTAY_CRASH_LOG", 0) == 0) spdlog::set_level(spdlog::level::off);
  return true;
}();
}  // namespace

History::History(Machine& machine, std::uint64_t seed, std::uint32_t ranks, std::uint64_t bytes_max)
    : machine_(machine), random_(seed), seed_(seed), ranks_(ranks), bytes_max_(bytes_max) {}

std::vector<std::byte> History::content(Attempt attempt, Rank rank) const {
  Random random(seed_ * 1'000'003 + attempt * 1009 + rank);
  std::vector<std::byte> bytes(random.between(1, bytes_max_));
  std::uint64_t word = random.below(UINT64_MAX);
  for (std::byte& byte : bytes) {
    word = word * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::byte>(word >> 56);
  }
  return bytes;
}

// --- what is reported ----------------------------------------------------------------------------

void History::watch() {
  for (auto& [number, version] : versions_) {
    const auto level = agent().job().level_of(number);
    if (level.level >= Level::local) version.local = true;
  }
}

std::set<VersionNumber> History::must_come_back() const {
  std::set<VersionNumber> out;
  for (auto at = versions_.rbegin(); at != versions_.rend() && out.size() < kept; ++at) {
    if (at->second.local) out.insert(at->first);
  }
  return out;
}

VersionNumber History::newest_reported() const {
  VersionNumber newest = 0;
  for (const auto& [number, version] : versions_) {
    if (version.local || version.captured) newest = number;
  }
  return newest;
}

VersionNumber History::newest_local() const {
  const auto local = must_come_back();
  return local.empty() ? 0 : *local.rbegin();
}

std::string History::describe() const {
  std::string text = fmt::format("seed {} ranks {}:", seed_, ranks_);
  for (const auto& [number, version] : versions_) {
    text += fmt::format(" v{}{}{}", number, version.captured ? " captured" : "",
                        version.local ? " local" : "");
  }
  return text;
}

// --- moves ---------------------------------------------------------------------------------------

void History::step() { agent().step(); }

void History::some_steps() {
  for (auto count = random_.below(5); count > 0; --count) step();
}

void History::settle() {
  for (unsigned done = 0; !agent().idle(); ++done) {
    ASSERT_LT(done, steps_max) << "the agent never comes to rest";
    step();
  }
  step();
}

bool History::join() {
  agent().after_step = [this] { watch(); };
  ++run_;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    EXPECT_TRUE(agent().join(rank, ranks_, run_).ok());
  }
  for (Rank rank = 0; rank < ranks_; ++rank) {
    agent().run_until("answer to hello", [&] {
      return agent().has<wire::Welcome>(rank) || agent().has<wire::Failure>(rank);
    });
    if (agent().has<wire::Failure>(rank)) {
      EXPECT_FALSE(agent().take<wire::Failure>(rank).message.empty());
      return false;
    }
    newest_ = std::max(newest_, agent().take<wire::Welcome>(rank).newest);
  }
  watch();
  // Numbers beyond are free again: what was tried with them has left nothing.
  for (auto at = versions_.upper_bound(newest_); at != versions_.end(); at = versions_.erase(at)) {
    EXPECT_FALSE(at->second.local) << "version " << at->first << " was reported local and is lost";
  }
  return true;
}

void History::leave() {
  for (Rank rank = 0; rank < ranks_; ++rank) agent().leave(rank);
}

Code History::take_version() {
  const VersionNumber number = ++newest_;
  const Attempt attempt = next_attempt_++;
  versions_[number] = {{attempt}, {}, false};
  const wire::Captured answer = [&] {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      agent().begin(rank, number, content(attempt, rank));
      some_steps();
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      agent().run_until(
          "all sent", [&] { return agent().sent_all(rank) || agent().has<wire::Captured>(rank); });
      if (!agent().has<wire::Captured>(rank)) agent().end(rank);
      some_steps();
    }
    return agent().captured(ranks_);
  }();
  EXPECT_EQ(answer.version, number);
  if (answer.code == Code::ok) {
    versions_[number].captured = attempt;
  } else {
    EXPECT_FALSE(answer.message.empty());
  }
  return answer.code;
}

void History::lose_a_rank() {
  const VersionNumber number = ++newest_;
  const Attempt attempt = next_attempt_++;
  versions_[number] = {{attempt}, {}, false};
  const auto victim = static_cast<Rank>(random_.below(ranks_));
  // 0: before its begin; 1: when all is sent; 2: after its own end; 3: after the end of all.
  const auto when = random_.below(4);
  bool alive = true;
  const auto die = [&] {
    agent().leave(victim, /*goodbye=*/false);
    alive = false;
  };
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank == victim && when == 0) {
      die();
    } else {
      agent().begin(rank, number, content(attempt, rank));
    }
    some_steps();
  }
  const auto living = [&](Rank rank) { return rank != victim || alive; };
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (!living(rank)) continue;
    agent().run_until("all sent",
                      [&] { return agent().sent_all(rank) || agent().has<wire::Captured>(rank); });
  }
  if (when == 1) die();
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (living(rank) && !agent().has<wire::Captured>(rank)) agent().end(rank);
    if (rank == victim && when == 2) die();
    some_steps();
  }
  if (alive) die();
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank == victim) continue;
    agent().run_until("answer", [&] { return agent().has<wire::Captured>(rank); });
    if (agent().take<wire::Captured>(rank).code == Code::ok) versions_[number].captured = attempt;
    agent().leave(rank);
  }
}

void History::restart(bool healthy) {
  const VersionNumber expected = newest_reported();
  const JobHarness::Back back = agent().restart(ranks_);
  if (back.code == Code::ok) {
    check_restored(back, 0);
    EXPECT_TRUE(back.version >= expected || machine_.stopped())
        << back.version << " " << describe();
    newest_ = std::max(newest_, back.version);
    return;
  }
  EXPECT_FALSE(back.message.empty());
  if (!healthy || machine_.stopped()) return;
  if (expected == 0) {
    EXPECT_EQ(back.code, Code::none) << back.message;
  } else {
    ADD_FAILURE() << "version " << expected << " was reported and is lost: " << back.message << "\n"
                  << describe();
  }
}

std::optional<Attempt> History::attempt_of(const JobHarness::Back& back,
                                           VersionNumber version) const {
  const auto known = versions_.find(version);
  if (known == versions_.end()) return std::nullopt;
  for (const Attempt attempt : known->second.possible) {
    bool same = back.data.size() == ranks_;
    for (const auto& [rank, data] : back.data) same = same && data == content(attempt, rank);
    if (same) return attempt;
  }
  return std::nullopt;
}

void History::check_restored(const JobHarness::Back& back, VersionNumber wanted) {
  EXPECT_TRUE(wanted == 0 || back.version == wanted) << back.version << " for " << wanted;
  EXPECT_TRUE(attempt_of(back, back.version)) << "wrong bytes in version " << back.version << "\n"
                                              << describe();
}

void History::agent_is_new() {
  for (auto& [number, version] : versions_) version.captured.reset();
  newest_ = 0;
}

void History::recover() {
  agent_is_new();
  machine_.start_agent();
  ASSERT_TRUE(join());
  restart(/*healthy=*/true);
  for (const VersionNumber number : must_come_back()) {
    const JobHarness::Back back = agent().restart(ranks_, number);
    EXPECT_EQ(back.code, Code::ok)
        << "version " << number << " was reported local: " << back.message << "\n"
        << describe();
    if (back.code == Code::ok) check_restored(back, number);
  }
  EXPECT_EQ(take_version(), Code::ok) << describe();
  settle();
  EXPECT_TRUE(versions_.rbegin()->second.local) << describe();
  restart(/*healthy=*/true);
}

void History::live(unsigned steps) {
  for (; steps > 0 && !machine_.stopped() && !::testing::Test::HasFailure(); --steps) {
    const auto dice = random_.below(10);
    if (dice == 0) {
      settle();
    } else if (dice == 1) {
      restart(/*healthy=*/!machine_.struck());
    } else if (dice == 2) {
      lose_a_rank();
      if (!join()) return;
    } else {
      take_version();
    }
    some_steps();
  }
}

}  // namespace backstay::crash
