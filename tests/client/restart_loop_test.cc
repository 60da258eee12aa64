// A restart whose ranks have different agents: two nodes with two ranks each.
#include "client/restart_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "base/machine.h"
#include "client/session.h"
#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

using testing::HasSubstr;

constexpr int ranks = 4;
constexpr int nodes = 2;
constexpr std::size_t region_bytes = 3000;

class TwoNodes : public testing::Test {
 protected:
  void start(FakeAgent::Options first = {}, FakeAgent::Options second = {}) {
    first.buffers = second.buffers = 64;
    agents_[0].emplace(worlds_[0].socket(), first);
    agents_[1].emplace(worlds_[1].socket(), second);
  }
  FakeAgent& agent(int node) { return *agents_[static_cast<std::size_t>(node)]; }

  std::unique_ptr<Session> session(const Group& group) {
    return session_in(worlds_[static_cast<std::size_t>(group.node())], group);
  }
  static Data data_of(int rank, VersionNumber version) {
    return pattern(region_bytes, static_cast<unsigned>(rank * 100 + static_cast<int>(version)));
  }
  // Versions 1 to `last`, then each rank has something else.
  void save(VersionNumber last) {
    ThreadGroup job(ranks, nodes);
    job.run([&](const Group& group) {
      auto mine = session(group);
      ASSERT_NE(mine, nullptr);
      Data data(region_bytes);
      ASSERT_TRUE(protect(*mine, "u", data).ok());
      for (VersionNumber version = 1; version <= last; ++version) {
        const Data now = data_of(group.rank(), version);
        std::copy(now.begin(), now.end(), data.begin());
        const Status saved = mine->checkpoint();
        ASSERT_TRUE(saved.ok()) << saved.error().to_string();
      }
    });
    for (int node = 0; node < nodes; ++node) {
      for (VersionNumber version = 1; version <= last; ++version) {
        agent(node).saved_ranks[version] = ranks;
      }
    }
  }
  // Versions 1 and 2; of the second the agent of node 1 says `lacking` of rank 3's part.
  void save_all_but_rank_3(Code lacking) {
    FakeAgent::Options lossy;
    lossy.lacking = lacking;
    start({}, lossy);
    save(2);
    agent(1).objects[2].erase(3);
  }
  // Every rank restarts: the version that they got, or the error, the same on all; no rank may have
  // bytes that are neither its own nor those of that version.
  Result<VersionNumber> restart() {
    std::array<std::optional<Result<VersionNumber>>, ranks> all;
    ThreadGroup job(ranks, nodes);
    job.run([&](const Group& group) {
      auto mine = session(group);
      ASSERT_NE(mine, nullptr);
      const Data before = pattern(region_bytes, 7000U + static_cast<unsigned>(group.rank()));
      Data data = before;
      ASSERT_TRUE(protect(*mine, "u", data).ok());
      if (change_regions == group.rank()) {
        ASSERT_TRUE(mine->unprotect("u").ok());
      }
      const auto got = mine->restart();
      EXPECT_EQ(data, got.ok() ? data_of(group.rank(), *got) : before) << group.rank();
      all[static_cast<std::size_t>(group.rank())] = got;
    });
    for (const auto& one : all) {
      EXPECT_EQ(code_of(*one), code_of(*all[0]));
      if (one->ok() && all[0]->ok()) {
        EXPECT_EQ(**one, **all[0]);
      }
    }
    for (int node = 0; node < nodes; ++node) EXPECT_EQ(agent(node).problem(), "");
    return *all[0];
  }
  void expect_back(VersionNumber version) {
    const auto got = restart();
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(*got, version);
  }
  std::optional<int> change_regions;

 private:
  std::array<World, nodes> worlds_;
  std::array<std::optional<FakeAgent>, nodes> agents_;
};

TEST_F(TwoNodes, BringBackTheNewestVersionOfAll) {
  start();
  save(3);
  expect_back(3);
  // No agent delivers before all have said that all are ready.
  for (int node = 0; node < nodes; ++node) {
    agent(node).stop();
    EXPECT_EQ(std::count(agent(node).log.begin(), agent(node).log.end(), "proceed"), ranks / nodes);
  }
}

TEST_F(TwoNodes, FallBackTogetherWhereOneNodesAgentFindsDamage) {
  FakeAgent::Options damaged;
  damaged.damage = {3};
  start({}, damaged);
  save(3);
  testing::internal::CaptureStderr();
  const auto got = restart();
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 2u);
  EXPECT_THAT(said, HasSubstr("version 3 skipped: "));
  EXPECT_EQ(said.find("version 3 skipped"), said.rfind("version 3 skipped")) << "once";
}

TEST_F(TwoNodes, FallBackTogetherWhereAnObjectIsMissing) {
  start();
  save(3);
  agent(1).objects[3].erase(3);
  agent(0).objects[2].erase(0);
  testing::internal::CaptureStderr();
  const auto got = restart();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("version 3 skipped: rank 2 (" + host_name() +
                                       "): rank 3's object is gone"),
                             HasSubstr("version 2 skipped: rank 0's object")));
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 1u);
}

TEST_F(TwoNodes, SayWhatIsKnownToBeDamagedBeforeItIsTried) {
  start();
  save(2);
  agent(0).set_aside = agent(1).set_aside = {
      {1, "not said: an older one"}, {3, "commit record: garbage"}, {4, "commit record: cut off"}};
  agent(1).objects[5] = agent(1).objects[2];  // the whole of 5 is nowhere
  testing::internal::CaptureStderr();
  const auto got = restart();
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 2u);
  for (const std::string line : {"version 5 skipped: ", "version 4 skipped: commit record: cut off",
                                 "version 3 skipped: commit record: garbage"}) {
    EXPECT_THAT(said, HasSubstr(line));
    EXPECT_EQ(said.find(line), said.rfind(line)) << "once";
  }
  EXPECT_THAT(said, testing::Not(HasSubstr("not said")));
}

TEST_F(TwoNodes, TakeWhatOneAgentKnowsToBeDamagedFromAnother) {
  start();
  save(2);
  agent(1).set_aside = {{2, "commit record: garbage"}};
  agent(1).hide = {2};
  expect_back(2);
}

TEST_F(TwoNodes, DoNotBeginAnewWhereAllThatThereIsIsDamaged) {
  start();
  agent(1).set_aside = {{3, "commit record: garbage"}};
  testing::internal::CaptureStderr();
  const auto got = restart();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("version 3 skipped: rank 2"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::corrupt);
  EXPECT_THAT(got.error().message(),
              testing::AllOf(HasSubstr("commit record: garbage"), HasSubstr("`backstay verify "),
                             HasSubstr("--fresh"), HasSubstr("BACKSTAY_JOB=NAME")));
}

// An environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Damage stays, and the rest may pass: another try is worth it. A fresh start needs none.
TEST_F(TwoNodes, SayOfSeveralReasonsWhatMayPass) {
  for (const Code passes : {Code::lost, Code::io}) {
    for (const VersionNumber damaged : {1, 2}) {
      SCOPED_TRACE(damaged);
      FakeAgent::Options second;
      second.lacking = passes;
      second.damage = {damaged};
      start({}, second);
      save(2);
      agent(1).objects[3 - damaged].erase(3);
      testing::internal::CaptureStderr();
      const auto got = restart();
      const Variable fresh("BACKSTAY_FRESH", "one"), first_try("BACKSTAY_ATTEMPT", "0");
      EXPECT_EQ(code_of(restart()), Code::none);
      testing::internal::GetCapturedStderr();
      EXPECT_EQ(code_of(got), passes);
    }
  }
}

TEST_F(TwoNodes, SayWhyOfEachVersionWhereNoneIsLeft) {
  start();
  save(2);
  agent(0).objects[2].erase(0);
  agent(1).objects[1].erase(3);
  testing::internal::CaptureStderr();
  const auto got = restart();
  testing::internal::GetCapturedStderr();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::lost);
  EXPECT_THAT(got.error().message(), testing::AllOf(HasSubstr("version 2 skipped: rank 0's"),
                                                    HasSubstr("rank 3's object")));
}

TEST_F(TwoNodes, PassOverWhatIsLostAndSaySoWhereNoneIsLeft) {
  save_all_but_rank_3(Code::lost);
  testing::internal::CaptureStderr();
  const auto older = restart();
  ASSERT_TRUE(older.ok()) << older.error().to_string();
  EXPECT_EQ(*older, 1u);
  agent(1).objects[1].erase(3);
  const auto none = restart();
  EXPECT_EQ(code_of(none), Code::lost);
  testing::internal::GetCapturedStderr();
}

// It may be there once that is mended.
TEST_F(TwoNodes, PassOverNothingWhereANodeMayNotRead) {
  FakeAgent::Options lossy;
  lossy.lacking = Code::lost;
  FakeAgent::Options forbidden;
  forbidden.lacking = Code::permission;
  start(lossy, forbidden);
  save(2);
  agent(0).objects[2].erase(1);
  agent(1).objects[2].erase(3);
  const auto got = restart();
  EXPECT_EQ(code_of(got), Code::permission);
}

// The version is there once that node is back: no rank is asked to go on without it.
TEST_F(TwoNodes, PassOverNothingWhereANodeCannotBeReached) {
  save_all_but_rank_3(Code::agent_lost);
  testing::internal::CaptureStderr();
  const auto got = restart();
  EXPECT_EQ(code_of(got), Code::agent_lost);
  EXPECT_THAT(got.error().message(), testing::Not(HasSubstr("may go on")));
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(HasSubstr("restart tries once more\n"), testing::Not(HasSubstr("may go on"))));
}

TEST_F(TwoNodes, SayNoneWhereNothingWasSaved) {
  start();
  const auto got = restart();
  EXPECT_EQ(code_of(got), Code::none);
}

TEST_F(TwoNodes, TakeTheVersionThatOnlyOneNodeHasARecordOf) {
  start();
  save(2);
  // The other one's disk has an older version of another run only, and gets its objects from
  // elsewhere.
  agent(0).hide = {2};
  expect_back(2);
}

TEST_F(TwoNodes, AgreeOnOneRunWhereTwoUsedTheSameNumber) {
  start();
  save(2);
  const RunId great = 0xF000000000000001;  // greater in its upper half, and no positive number
  agent(0).runs[2] = great;
  agent(1).runs[2] = 0x7000000000000005;
  std::array<RunId, nodes> asked{};
  // Seen by the agents: both are asked for the same run.
  for (int node = 0; node < nodes; ++node) {
    agent(node).on_restart = [&asked, node](const wire::Restart& restart) {
      asked[static_cast<std::size_t>(node)] = restart.run;
    };
  }
  const auto got = restart();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(asked[0], great);
  EXPECT_EQ(asked[1], great);
}

TEST_F(TwoNodes, ReadARegionOfTheRunThatWasBroughtBack) {
  FakeAgent::Options watched;
  std::vector<RunId> fetched;  // by the agent's thread; read once it has answered
  watched.hook = [&fetched](const wire::Message& message) {
    if (const auto* fetch = std::get_if<wire::Fetch>(&message)) fetched.push_back(fetch->run);
    return FakeAgent::Action::go_on;
  };
  start({}, watched);
  save(2);
  for (int node = 0; node < nodes; ++node) agent(node).runs[2] = 55;
  ThreadGroup job(ranks, nodes);
  job.run([&](const Group& group) {
    auto mine = session(group);
    ASSERT_NE(mine, nullptr);
    Data data(region_bytes);
    ASSERT_TRUE(protect(*mine, "u", data).ok());
    ASSERT_TRUE(mine->restart().ok());
    Data read(region_bytes);
    if (group.rank() == 3) {
      for (const VersionNumber version : {2, 1}) {
        const Status got = mine->read_region(version, "u", read.data(), read.size());
        EXPECT_TRUE(got.ok());
        EXPECT_EQ(read, data_of(3, version));
      }
    }
  });
  agent(1).stop();
  EXPECT_THAT(fetched, testing::ElementsAre(55U, 55U, 0U, 0U)) << "table and region of each";
}

TEST_F(TwoNodes, RegionsThatDifferAreAnErrorForAllAndNoVersionIsSkipped) {
  start();
  save(2);
  change_regions = 3;
  const auto got = restart();
  EXPECT_EQ(code_of(got), Code::mismatch);
  change_regions.reset();
  EXPECT_EQ(restart().value(), 2u);
}

TEST_F(TwoNodes, AFreshStartTakesOnlyVersionsWithItsSign) {
  start();
  {
    const Variable fresh("BACKSTAY_FRESH", "one");
    save(2);
    EXPECT_EQ(restart().value(), 2u);
  }
  EXPECT_EQ(restart().value(), 2u);
  const Variable fresh("BACKSTAY_FRESH", "other"), first_try("BACKSTAY_ATTEMPT", "0");
  change_regions = 3;
  EXPECT_EQ(code_of(restart()), Code::none);
}

TEST_F(TwoNodes, AFreshStartSaysSoWhereAVersionOfItsOwnIsDamagedAndOlderOnesAreNot) {
  FakeAgent::Options lossy;
  lossy.lacking = Code::corrupt;
  start({}, lossy);
  save(1);
  const Variable fresh("BACKSTAY_FRESH", "one");
  save(1);
  for (int node = 0; node < nodes; ++node) agent(node).saved_ranks[2] = ranks;
  agent(1).objects[2].erase(3);
  EXPECT_EQ(code_of(restart()), Code::corrupt);
}

TEST_F(TwoNodes, AnotherProgramIsRefusedUnderADefaultNameOnly) {
  start();
  const Variable saving("BACKSTAY_PROGRAM", "sor");
  save(1);
  const Variable restarting("BACKSTAY_PROGRAM", "other");
  EXPECT_EQ(restart().value(), 1u);
  const Variable default_name("BACKSTAY_DEFAULT_JOB", "test");
  const auto got = restart();
  ASSERT_EQ(code_of(got), Code::mismatch);
  EXPECT_THAT(got.error().message(), HasSubstr("'sor', and this is 'other'"));
}

TEST_F(TwoNodes, ARankThatIsCutOffAtReadyLeavesNobodyWithHalfAVersion) {
  FakeAgent::Options cut;
  bool once = true;
  cut.hook = [&once](const wire::Message& message) {
    if (!std::holds_alternative<wire::Verified>(message) || !std::exchange(once, false)) {
      return FakeAgent::Action::go_on;
    }
    return FakeAgent::Action::reborn;
  };
  start({}, cut);
  save(2);
  testing::internal::CaptureStderr();
  const auto got = restart();  // the agent is lost, and the second try finds it again
  testing::internal::GetCapturedStderr();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(*got, 2u);
}

TEST_F(TwoNodes, AnotherNumberOfRanksRedistributes) {
  start();
  constexpr std::uint64_t cells = 24;
  const auto protect_block = [](Session& session, std::vector<double>& block, int rank, int count) {
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = block.size();
    array.global_shape[0] = cells;
    array.global_offset[0] =
        cells / static_cast<std::uint64_t>(count) * static_cast<unsigned>(rank);
    return session.protect("u", block.data(), &array, BACKSTAY_DOUBLE);
  };
  ThreadGroup four(4, nodes);
  four.run([&](const Group& group) {
    auto mine = session(group);
    ASSERT_NE(mine, nullptr);
    std::vector<double> block(cells / 4);
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<double>(group.rank()) * 6 + static_cast<double>(i);
    }
    ASSERT_TRUE(protect_block(*mine, block, group.rank(), 4).ok());
    ASSERT_TRUE(mine->checkpoint().ok());
  });
  for (int node = 0; node < nodes; ++node) {
    agent(node).saved_ranks[1] = 4;
    // Any agent gets any saved rank's object.
    for (const auto& [rank, object] : agent(1 - node).objects[1]) {
      agent(node).objects[1].emplace(rank, object);
    }
  }
  ThreadGroup two(2, nodes);
  two.run([&](const Group& group) {
    auto mine = session(group);
    ASSERT_NE(mine, nullptr);
    std::vector<double> block(cells / 2, -1);
    ASSERT_TRUE(protect_block(*mine, block, group.rank(), 2).ok());
    const auto got = mine->restart();
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(*got, 1u);
    for (std::size_t i = 0; i < block.size(); ++i) {
      EXPECT_EQ(block[i], static_cast<double>(group.rank()) * 12 + static_cast<double>(i));
    }
  });
  for (int node = 0; node < nodes; ++node) EXPECT_EQ(agent(node).problem(), "");
}

}  // namespace
}  // namespace backstay::client::test
