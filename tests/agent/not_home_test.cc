// Versions of captured files stay until their files are at their own places, where those are
// brought there: then retention counts.
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/checkpoint/writers.h"
#include "agent/disk/links.h"
#include "agent/version/retention.h"

namespace backstay::agent {
namespace {

struct Deaf final : Outbox, StoreLink {
  void send(ConnectionId, wire::Message, std::vector<int>) override {}
  void close(ConnectionId) override {}
  void post(Command) override {}
  void post_drain(DrainCommand) override {}
};

class NotHome : public ::testing::Test {
 protected:
  NotHome() {
    for (const VersionNumber version : {1, 2, 3}) {
      StoredVersion stored;
      stored.version = version;
      stored.level = Level::local;
      state_.versions.found(stored, Where::disk);
    }
    state_.newest = 3;
    state_.versions.take_orders();
  }
  std::vector<VersionNumber> removable() {
    std::vector<VersionNumber> all = expired(state_.versions, 1);
    std::ranges::sort(all);
    return all;
  }
  using Versions = std::vector<VersionNumber>;

  std::unique_ptr<Pool> pool_ = std::move(Pool::create({1 << 20, 1 << 16, false}).value());
  Deaf deaf_;
  JobState state_{.name = "job.files.n1",
                  .dir = "/d",
                  .pool = *pool_,
                  .outbox = deaf_,
                  .store = deaf_,
                  .events = deaf_,
                  .clock = system_clock()};
  VersionOutput output_{state_};
  Writers writers_{state_, output_};
};

TEST_F(NotHome, StaysUntilItsFilesAreAtTheirPlaces) {
  state_.files_come_home = true;
  writers_.begin_run();
  EXPECT_EQ(removable(), Versions());
  writers_.brought_home(2);
  EXPECT_TRUE(state_.versions.take_orders().retain);
  EXPECT_EQ(removable(), Versions{2});
  writers_.brought_home(2);
  writers_.brought_home(1);
  writers_.brought_home(3);
  EXPECT_EQ(removable(), (Versions{1, 2})) << "the newest stays";
}

TEST_F(NotHome, AVersionIsPinnedFromItsBeginUntilItIsGivenUp) {
  state_.files_come_home = true;
  writers_.begin_run();
  writers_.join(5, 4711);
  ASSERT_TRUE(writers_.receive(5, wire::Open{1}).ok());
  EXPECT_TRUE(state_.versions.is_pinned(4));
  writers_.disconnected(5, /*goodbye=*/false);
  EXPECT_FALSE(state_.versions.is_pinned(4));
  writers_.gone(1);
  EXPECT_FALSE(state_.versions.is_pinned(1)) << "a tool has removed it";
}

TEST_F(NotHome, KeepAloneCountsWhereNothingBringsFilesHome) {
  writers_.begin_run();
  writers_.join(5, 4711);
  ASSERT_TRUE(writers_.receive(5, wire::Open{1}).ok());
  EXPECT_FALSE(state_.versions.is_pinned(4));
  EXPECT_EQ(removable(), (Versions{1, 2}));
}

}  // namespace
}  // namespace backstay::agent
