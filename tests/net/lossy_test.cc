// That the wrapper plays the faults it names, and the same ones under the same seed.
#include "net/lossy.h"

#include "aligned_bytes.h"
#include "expect_status.h"
#include "net/loopback.h"
#include "net_world.h"

namespace backstay::testing {
namespace {

class LossyTest : public ::testing::Test {
 protected:
  // The first end fails as planned; the second does not.
  NetWorld make(net::LossyPlan plan) {
    NetUnderTest under;
    under.pass_time = [this] { clock_.advance(20'000'000); };
    auto first = net::make_lossy(network_.make("lossy"), clock_, plan);
    lossy_ = first.get();
    under.ends.push_back(std::move(first));
    under.ends.push_back(network_.make("sound"));
    return NetWorld(std::move(under));
  }
  ManualClock clock_;
  net::LoopbackNetwork network_{clock_};
  net::LossyTransport* lossy_ = nullptr;
};

TEST_F(LossyTest, ACutIsSeenByBothAndLosesTheEnd) {
  auto world = make({.seed = 1, .cut_one_in = 10});
  const auto peer = world[1].connect("lossy");
  std::size_t sent = 0;
  ASSERT_TRUE(world.until([&] {
    if (world[1].send(peer, pattern(8, 1)).ok()) ++sent;
    return world.count<net::Closed>(0) == 1 && world.count<net::Closed>(1) == 1;
  }));
  EXPECT_LT(world.count<net::Message>(0), sent);
  EXPECT_TRUE(fails_with(world.of<net::Closed>(0)[0]->status, Code::agent_lost));
  EXPECT_TRUE(fails_with(world.of<net::Closed>(1)[0]->status, Code::agent_lost));
}

TEST_F(LossyTest, EventsAreLate) {
  auto world = make({.seed = 1, .delay_s_max = 1});
  const auto [sound, lossy] = world.join(1, 0);
  const std::uint64_t before = clock_.monotonic_ns();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(is_ok(world[1].send(sound, {})));
  ASSERT_TRUE(
      world.until([&, lossy = lossy] { return world.count<net::Message>(0, lossy) == 20; }));
  EXPECT_GT(clock_.monotonic_ns() - before, 500'000'000u);
}

TEST_F(LossyTest, ConnectFails) {
  auto world = make({.seed = 1, .unreachable_one_in = 1});
  const auto peer = world[0].connect("sound");
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0, peer) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Closed>(0)[0]->status, Code::agent_lost));
}

TEST_F(LossyTest, BusyIsFollowedByReady) {
  auto world = make({.seed = 1, .busy_one_in = 1});
  const auto [lossy, sound] = world.join(0, 1);
  EXPECT_TRUE(fails_with(world[0].send(lossy, {}), Code::again));
  ASSERT_TRUE(world.until([&, lossy = lossy] { return world.count<net::Ready>(0, lossy) == 1; }));
}

TEST_F(LossyTest, OffersAreRefused) {
  auto world = make({.seed = 1, .refused_one_in = 1});
  const auto [sound, lossy] = world.join(1, 0);
  const Buffer memory(10);
  ASSERT_TRUE(is_ok(world[1].offer(sound, {}, memory)));
  ASSERT_TRUE(world.until([&] { return world.count<net::Taken>(1) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Taken>(1)[0]->status, Code::again));
  EXPECT_EQ(world.count<net::Offered>(0), 0u);
}

TEST_F(LossyTest, APowerOffIsSilentAndNoticedLater) {
  auto world = make({});
  const auto [sound, lossy] = world.join(1, 0);
  lossy_->kill();
  const std::uint64_t before = clock_.monotonic_ns();
  ASSERT_TRUE(world.until([&, sound = sound] { return world.count<net::Closed>(1, sound) == 1; }));
  EXPECT_GT(clock_.monotonic_ns() - before, 9'000'000'000u);
}

TEST_F(LossyTest, TheSameSeedPlaysTheSameFaults) {
  std::vector<std::size_t> received;
  for (const std::uint64_t seed : {7u, 7u, 8u}) {
    auto world = make({.seed = seed, .delay_s_max = 0.1, .cut_one_in = 200});
    const auto peer = world[1].connect("lossy");
    ASSERT_TRUE(world.until([&] {
      (void)world[1].send(peer, pattern(8, 1));
      return world.count<net::Closed>(1) == 1;
    }));
    received.push_back(world.count<net::Message>(0));
  }
  EXPECT_EQ(received[0], received[1]);
  EXPECT_NE(received[0], received[2]);
}

}  // namespace
}  // namespace backstay::testing
