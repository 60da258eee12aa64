// Whether an object's versions may keep chunks of the one before: two nodes with two ranks each,
// whose ranks must come to the same.
#include "client/object_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "base/checksum.h"
#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr int all_ranks = 4;
constexpr int all_nodes = 2;

// Keeps nothing.
class Letters final : public ObjectSource {
 public:
  explicit Letters(VersionNumber base) : base_(base) {}
  std::uint64_t object_bytes() const override { return 300; }
  Kept kept() const override { return {base_, {}}; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override {
    std::ranges::fill(to, std::byte{'a'});
    return checksum(to);
  }

 private:
  const VersionNumber base_;
};

// What is saved ends before its time, as the copy of a process that the machine kills.
class Broken final : public ObjectSource {
 public:
  std::uint64_t object_bytes() const override { return 300; }
  Result<std::uint64_t> read_next(std::span<std::byte>) override {
    return Error(Code::io, "the copy was killed");
  }
};

class Bases : public testing::Test {
 protected:
  void start(const std::map<VersionNumber, Level>& levels_at_node_1 = {}) {
    for (std::size_t node = 0; node < all_nodes; ++node) {
      FakeAgent::Options options;
      options.hook = [this](const wire::Message& message) {
        const std::lock_guard lock(mutex_);
        if (const auto* kept = std::get_if<wire::Kept>(&message)) told_.push_back(kept->base);
        return FakeAgent::Action::go_on;
      };
      agents_[node].emplace(worlds_[node].socket(), options);
    }
    agents_[1]->levels = levels_at_node_1;
  }
  // The base of each of so many versions, the same on all ranks; this rank alone would keep chunks.
  std::vector<VersionNumber> bases(int versions, int keeper) {
    std::array<std::vector<VersionNumber>, all_ranks> all;
    ThreadGroup job(all_ranks, all_nodes);
    job.run([&](const Group& group) {
      auto session = session_in(worlds_[static_cast<std::size_t>(group.node())], group);
      ASSERT_NE(session, nullptr);
      ObjectSession objects(*session);
      for (int version = 0; version < versions; ++version) {
        const Status saved = objects.checkpoint(
            [&](Connection&, const Origin&) {
              all[static_cast<std::size_t>(group.rank())].push_back(objects.base());
              return Result<std::unique_ptr<ObjectSource>>(
                  std::make_unique<Letters>(objects.base()));
            },
            group.rank() == keeper);
        ASSERT_TRUE(saved.ok()) << saved.error().to_string();
      }
    });
    EXPECT_THAT(all, Each(all[0]));
    for (auto& agent : agents_) EXPECT_EQ(agent->problem(), "");
    return all[0];
  }
  std::vector<VersionNumber> told_;  // the bases that agents heard of

 private:
  std::mutex mutex_;
  std::array<World, all_nodes> worlds_;
  std::array<std::optional<FakeAgent>, all_nodes> agents_;
};

TEST_F(Bases, AllRanksHaveTheOneOfWhichARankKeepsChunksAndTellItsAgents) {
  start();
  EXPECT_THAT(bases(3, /*keeper=*/3), ElementsAre(0, 1, 2));
  std::ranges::sort(told_);
  EXPECT_THAT(told_, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
}

TEST_F(Bases, ThereIsNoneWhereNoRankKeepsChunks) {
  start();
  EXPECT_THAT(bases(3, /*keeper=*/all_ranks), ElementsAre(0, 0, 0));
  EXPECT_THAT(told_, ElementsAre());
}

// The ranks of node 0 would take it: their agent tells it as local.
TEST_F(Bases, AVersionThatOneAgentDoesNotTellAsLocalIsNone) {
  start({{2, Level::captured}});
  EXPECT_THAT(bases(4, /*keeper=*/0), ElementsAre(0, 1, 0, 3));
}

TEST(BrokenObjects, CostAVersionAndNoConnection) {
  World world;
  std::atomic<int> connected = 0;
  FakeAgent::Options options;
  options.hook = [&](const wire::Message& message) {
    connected += std::holds_alternative<wire::Hello>(message) ? 1 : 0;
    return FakeAgent::Action::go_on;
  };
  FakeAgent agent(world.socket(), options);
  ThreadGroup job(3);
  job.run([&](const Group& group) {
    auto session = session_in(world, group);
    ASSERT_NE(session, nullptr);
    ObjectSession objects(*session);
    for (const bool breaks : {true, false}) {
      const Status saved = objects.checkpoint([&](Connection&, const Origin&) {
        using Source = std::unique_ptr<ObjectSource>;
        const bool broken = breaks && group.rank() == 1;
        return Result<Source>(broken ? Source(std::make_unique<Broken>())
                                     : Source(std::make_unique<Letters>(0)));
      });
      EXPECT_EQ(saved.ok(), !breaks);
      if (!breaks) continue;
      EXPECT_EQ(saved.error().code(), Code::io);
      EXPECT_NE(saved.error().message().find("the copy was killed"), std::string::npos);
    }
    EXPECT_EQ(session->version(), 2u);
  });
  EXPECT_EQ(agent.problem(), "");
  EXPECT_EQ(connected, 3) << "no rank had to connect again";
}

// Takes what Letters has saved.
class TakesLetters final : public ObjectTarget {
 public:
  std::uint64_t table_bytes() const override { return 0; }
  Result<std::uint64_t> tail_bytes(Bytes footer, std::uint64_t) override { return footer.size(); }
  Status match_tail(Bytes, std::uint64_t) override { return answer; }
  Status place(std::uint64_t, Bytes chunk, Checksum* sum) override {
    if (sum != nullptr) sum->update(chunk);
    return {};
  }
  bool exchange(std::uint64_t, std::span<std::byte>) override { return false; }
  Status finish() override { return {}; }
  Status answer;
};

constexpr RunId ours = RunId{5} << 32;  // and the next ones: of the launch under test

// On one node and on two.
class Restarts : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (std::size_t node = 0; node < all_nodes; ++node) {
      agents_[node].emplace(worlds_[node].socket(), FakeAgent::Options{});
    }
    ::setenv("BACKSTAY_LAUNCH", "00000005", 1);
    run_all([&](Session& session, int) {
      ObjectSession objects(session);
      for (int version = 1; version <= 4; ++version) {
        const Status saved = objects.checkpoint([&](Connection&, const Origin&) {
          return Result<std::unique_ptr<ObjectSource>>(std::make_unique<Letters>(0));
        });
        ASSERT_TRUE(saved.ok()) << saved.error().to_string();
      }
    });
    for (auto& agent : agents_) {
      for (VersionNumber version = 1; version <= 4; ++version) {
        agent->saved_ranks[version] = all_ranks;
        agent->runs[version] = version + 1;  // of another launch
      }
    }
  }
  void TearDown() override {
    ::unsetenv("BACKSTAY_LAUNCH");
    ::unsetenv("BACKSTAY_FROM");
  }
  template <typename Function>
  void run_all(const Function& function) {
    ThreadGroup job(all_ranks, GetParam());
    job.run([&](const Group& group) {
      auto session = session_in(worlds_[static_cast<std::size_t>(group.node())], group);
      ASSERT_NE(session, nullptr);
      function(*session, group.rank());
    });
  }
  // The same on all ranks. Rank 3 answers so when it is asked for the first time.
  Result<VersionNumber> restart(const Status& rank_3 = {}) {
    std::array<std::optional<Result<VersionNumber>>, all_ranks> all;
    run_all([&](Session& session, int rank) {
      ObjectSession objects(session);
      TakesLetters target;
      if (rank == 3) target.answer = rank_3;
      int tries = 0;
      all.at(static_cast<std::size_t>(rank)) =
          objects.restart([&](Connection&, const Origin&) -> ObjectTarget& {
            if (tries++ > 0) target.answer = {};
            return target;
          });
    });
    for (const auto& one : all) {
      EXPECT_EQ(one->ok() ? **one : 0, all[0]->ok() ? **all[0] : 0);
    }
    for (auto& agent : agents_) EXPECT_EQ(agent->problem(), "");
    return *all[0];
  }
  void belongs_to_us(VersionNumber version) {
    for (auto& agent : agents_) agent->runs[version] = ours + version;
  }
  std::array<World, all_nodes> worlds_;
  std::array<std::optional<FakeAgent>, all_nodes> agents_;
};
INSTANTIATE_TEST_SUITE_P(Nodes, Restarts, testing::Values(1, 2));

TEST_P(Restarts, TakeTheNewest) {
  const auto got = restart();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 4u);
}

TEST_P(Restarts, GoBackTogetherWhereOneRankRefusesAVersion) {
  testing::internal::CaptureStderr();
  const auto got = restart(Error(Code::not_found, "a file is missing"));
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 3u);
  EXPECT_THAT(said, testing::HasSubstr("version 4 skipped: "));
  EXPECT_THAT(said, testing::HasSubstr("a file is missing"));
  EXPECT_THAT(said, testing::HasSubstr("goes on from version 3"));
}

TEST_P(Restarts, EndWhereARefusalConcernsEachVersion) {
  const auto got = restart(Error(Code::mismatch, "another processor"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::mismatch);
  EXPECT_THAT(got.error().message(), testing::HasSubstr("another processor"));
}

TEST_P(Restarts, TakeTheVersionThatIsWanted) {
  ::setenv("BACKSTAY_FROM", "2", 1);
  const auto got = restart();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 2u);
}

TEST_P(Restarts, TakeWhatThisLaunchHasSavedSinceThen) {
  ::setenv("BACKSTAY_FROM", "2", 1);
  belongs_to_us(4);
  const auto got = restart();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 4u);
  const auto older = restart(Error(Code::not_found, "a file is missing"));
  ASSERT_TRUE(older.ok()) << older.error().to_string();
  EXPECT_EQ(*older, 2u) << "3 is of another launch";
}

TEST_P(Restarts, TakeNoOlderVersionThanTheOneThatIsWanted) {
  ::setenv("BACKSTAY_FROM", "3", 1);
  const auto got = restart(Error(Code::not_found, "a file is missing"));
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(got.error().message(),
              testing::AllOf(testing::HasSubstr("version 3 skipped"), testing::HasSubstr("--from"),
                             testing::HasSubstr("`backstay ls`")));
}

TEST_P(Restarts, WhatWasBroughtBackIsABaseWhereAllAgentsSaySo) {
  for (const int saying : {0, 1, 2}) {
    for (int node = 0; node < all_nodes; ++node) agents_[node]->may_be_base = node < saying;
    const VersionNumber wanted = saying >= GetParam() ? 4 : 0;
    run_all([&](Session& session, int) {
      ObjectSession objects(session);
      TakesLetters target;
      const auto got =
          objects.restart([&](Connection&, const Origin&) -> ObjectTarget& { return target; });
      ASSERT_TRUE(got.ok()) << got.error().to_string();
      EXPECT_EQ(objects.may_keep(), wanted != 0);
      const auto look = [&](Connection&, const Origin&) -> Result<std::unique_ptr<ObjectSource>> {
        EXPECT_EQ(objects.base(), wanted);
        return Error(Code::busy, "no version is taken");
      };
      EXPECT_FALSE(objects.checkpoint(look, /*keeps=*/true).ok());
    });
  }
}

// The agent names no version when it is asked for candidates, and has one a moment later.
TEST_P(Restarts, MakeReadyAlsoWhatTheAgentHasLearntOfSinceItWasAsked) {
  if (GetParam() > 1) GTEST_SKIP() << "there nothing is asked for that nobody has named";
  agents_[0]->hide = {1, 2, 3, 4};
  std::atomic<int> ready = 0;
  run_all([&](Session& session, int) {
    ObjectSession objects(session);
    TakesLetters target;
    const auto got =
        objects.restart([&](Connection&, const Origin&) -> ObjectTarget& { return target; },
                        [&](bool) {
                          ++ready;
                          return Status();
                        });
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(*got, 4u);
  });
  EXPECT_EQ(ready, all_ranks);
}

TEST_P(Restarts, SayWhereTheVersionThatIsWantedDoesNotExist) {
  ::setenv("BACKSTAY_FROM", "9", 1);
  const auto got = restart();
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().code(), Code::none) << "nothing begins again";
}

}  // namespace
}  // namespace backstay::client::test
