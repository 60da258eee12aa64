// Whether an object's versions may keep chunks of the one before: two nodes with two ranks each,
// whose ranks must come to the same.
#include "client/object_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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
  FakeAgent agent(world.socket(), {});
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
  EXPECT_EQ(std::ranges::count(agent.log, "hello"), 3) << "no rank had to connect again";
}

}  // namespace
}  // namespace backstay::client::test
