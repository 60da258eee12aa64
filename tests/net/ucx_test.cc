// Bulk data by UCX (over TCP, on the device lo): that it is used, what it refuses, that it sleeps.
#include "net/ucx.h"

#include "aligned_bytes.h"
#include "expect_status.h"
#include "net/tcp.h"
#include "net_world.h"

namespace backstay::testing {
namespace {

const net::UcxOptions over_tcp{.devices = "lo", .transports = "tcp"};

std::unique_ptr<net::BulkLane> make_lane() {
  auto lane = net::make_ucx(over_tcp);
  EXPECT_TRUE(is_ok(lane));
  return std::move(lane).value();
}

net::BulkToken token(int value) {
  net::BulkToken all;
  all.fill(static_cast<std::byte>(value));
  return all;
}

TEST(Ucx, AnUnknownDeviceListsTheOthers) {
  const auto lane = net::make_ucx({.devices = "mlx99:1", .transports = "tcp"});
  ASSERT_TRUE(fails_with(lane, Code::not_found));
  EXPECT_NE(lane.error().message().find("mlx99:1"), std::string::npos);
  EXPECT_NE(lane.error().message().find("lo"), std::string::npos);
}

TEST(Ucx, ATransportThatTheDeviceDoesNotHave) {
  const auto lane = net::make_ucx({.devices = "lo", .transports = "ib"});
  ASSERT_TRUE(fails_with(lane, Code::unsupported));
  EXPECT_NE(lane.error().message().find("ib"), std::string::npos);
}

// Two lanes that know each other; what they have said.
class UcxPair : public ::testing::Test {
 protected:
  UcxPair() : lanes_{make_lane(), make_lane()} {
    EXPECT_TRUE(is_ok(lanes_[0]->attach(1, token(10), token(20), lanes_[1]->address())));
    EXPECT_TRUE(is_ok(lanes_[1]->attach(2, token(20), token(10), lanes_[0]->address())));
  }
  ::testing::AssertionResult until(const std::function<bool()>& condition) {
    const std::uint64_t deadline = deadline_in(30);
    while (!condition()) {
      if (system_clock().monotonic_ns() > deadline)
        return ::testing::AssertionFailure() << "did not happen in 30 s";
      for (std::size_t i : {0u, 1u}) {
        bool more = false;
        for (auto& event : lanes_[i]->progress(&more)) events_[i].push_back(std::move(event));
      }
    }
    return ::testing::AssertionSuccess();
  }
  std::unique_ptr<net::BulkLane> lanes_[2];
  std::vector<net::BulkEvent> events_[2];
};

TEST_F(UcxPair, DataThatIsExpectedArrives) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{5} << 20}) {
    const Buffer from = pattern(size, size);
    Buffer to(size);
    events_[0].clear();
    events_[1].clear();
    lanes_[1]->expect(2, size, to);
    lanes_[0]->send(1, size, from);
    ASSERT_TRUE(until([&] { return events_[0].size() == 1 && events_[1].size() == 1; }));
    EXPECT_EQ(events_[0][0].what, net::BulkEvent::What::sent);
    EXPECT_EQ(events_[1][0].what, net::BulkEvent::What::received);
    EXPECT_EQ(events_[1][0].peer, 2u);
    EXPECT_EQ(events_[1][0].offer, size);
    EXPECT_TRUE(is_ok(events_[1][0].status));
    EXPECT_EQ(first_difference(to, size), size);
  }
}

TEST_F(UcxPair, DataThatNobodyExpectsIsDropped) {
  const Buffer from = pattern(100'000, 1);
  Buffer to(100'000);
  lanes_[1]->expect(2, 5, to);
  lanes_[0]->send(1, 4, from);                     // another number
  lanes_[0]->send(1, 5, Bytes(from).first(1000));  // another size
  ASSERT_TRUE(until([&] { return events_[0].size() == 2; }));
  EXPECT_TRUE(events_[1].empty());
  EXPECT_EQ(to, Buffer(100'000));
}

TEST_F(UcxPair, DataWithoutTheTokenIsDropped) {
  ASSERT_TRUE(is_ok(lanes_[0]->attach(3, token(30), token(99), lanes_[1]->address())));
  const Buffer from = pattern(100'000, 1);
  Buffer to(100'000);
  lanes_[1]->expect(2, 5, to);
  lanes_[0]->send(3, 5, from);
  ASSERT_TRUE(until([&] { return events_[0].size() == 1; }));
  EXPECT_TRUE(events_[1].empty());
  EXPECT_EQ(to, Buffer(100'000));
  lanes_[0]->send(1, 5, from);
  ASSERT_TRUE(until([&] { return events_[1].size() == 1; }));
  EXPECT_EQ(to, from);
}

TEST_F(UcxPair, ADetachedPeerLetsGoOfItsMemory) {
  const Buffer from(std::size_t{32} << 20);
  Buffer to(from.size());
  lanes_[1]->expect(2, 1, to);
  lanes_[0]->send(1, 1, from);
  bool more = false;
  for (int i = 0; i < 20; ++i)
    for (auto& lane : lanes_) lane->progress(&more);
  lanes_[0]->detach(1);
  lanes_[1]->detach(2);
  ASSERT_TRUE(until([&] { return !lanes_[0]->in_use(1) && !lanes_[1]->in_use(2); }));
  EXPECT_TRUE(events_[0].empty());
  EXPECT_TRUE(events_[1].empty());
}

// Hands everything on and counts.
class CountingLane final : public net::BulkLane {
 public:
  explicit CountingLane(int& sends) : sends_(sends) {}
  int descriptor() const override { return inner_->descriptor(); }
  Bytes address() const override { return inner_->address(); }
  Status attach(net::PeerId peer, const net::BulkToken& ours, const net::BulkToken& theirs,
                Bytes address) override {
    return inner_->attach(peer, ours, theirs, address);
  }
  void send(net::PeerId peer, net::OfferId offer, Bytes memory) override {
    ++sends_;
    inner_->send(peer, offer, memory);
  }
  void expect(net::PeerId peer, net::OfferId offer, std::span<std::byte> memory) override {
    inner_->expect(peer, offer, memory);
  }
  void detach(net::PeerId peer) override { inner_->detach(peer); }
  bool in_use(net::PeerId peer) const override { return inner_->in_use(peer); }
  std::vector<net::BulkEvent> progress(bool* more) override { return inner_->progress(more); }

 private:
  std::unique_ptr<net::BulkLane> inner_ = make_lane();
  int& sends_;
};

class UcxTransport : public ::testing::Test {
 protected:
  NetWorld make(bool first_has_it, bool second_has_it) {
    const net::Secret secret = net::Secret::random();
    NetUnderTest under;
    for (const bool has_it : {first_has_it, second_has_it}) {
      net::TcpOptions options{
          .secret = secret, .identity = "end", .device = "lo", .dead_after_s = 1};
      if (has_it) options.bulk = std::make_unique<CountingLane>(sends_);
      under.ends.push_back(net::make_tcp(std::move(options)).value());
    }
    return NetWorld(std::move(under));
  }
  void move_something(NetWorld& world) {
    const auto [a, b] = world.join(0, 1);
    const Buffer from = pattern(3'000'000, 1);
    Buffer to(from.size());
    ASSERT_TRUE(is_ok(world[0].offer(a, {}, from)));
    ASSERT_TRUE(world.until([&] { return world.count<net::Offered>(1) == 1; }));
    ASSERT_TRUE(is_ok(world[1].fetch(b, 1, to)));
    ASSERT_TRUE(world.until(
        [&] { return world.count<net::Fetched>(1) == 1 && world.count<net::Taken>(0) == 1; }));
    EXPECT_TRUE(is_ok(world.of<net::Fetched>(1)[0]->status));
    EXPECT_EQ(to, from);
  }
  int sends_ = 0;
};

TEST_F(UcxTransport, IsUsedWhereBothHaveIt) {
  auto world = make(true, true);
  move_something(world);
  EXPECT_EQ(sends_, 1);
}

TEST_F(UcxTransport, IsNotNeededByEither) {
  for (const bool first : {true, false}) {
    auto world = make(first, !first);
    move_something(world);
    EXPECT_EQ(sends_, 0);
  }
}

TEST_F(UcxTransport, AnIdleEndSleeps) {
  auto world = make(true, true);
  move_something(world);
  EXPECT_LT(world.wakeups_in_a_second(), 60);
}

}  // namespace
}  // namespace backstay::testing
