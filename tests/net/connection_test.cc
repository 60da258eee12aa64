// That memory of a fetch has one writer: the lane, or the connection.
#include "net/connection.h"

#include <sys/socket.h>

#include "expect_status.h"

namespace backstay::net {
namespace {

using testing::fails_with;
using testing::is_ok;

// Remembers where data shall go and moves nothing.
class IdleLane final : public BulkLane {
 public:
  int descriptor() const override { return -1; }
  Bytes address() const override { return address_; }
  Status attach(PeerId, const BulkToken&, const BulkToken&, Bytes) override { return {}; }
  void send(PeerId, OfferId, Bytes) override { ++sends; }
  void expect(PeerId, OfferId offer, std::span<std::byte>) override { expected.push_back(offer); }
  void detach(PeerId) override { using_memory = false; }
  bool in_use(PeerId) const override { return using_memory; }
  std::vector<BulkEvent> progress(bool*) override { return {}; }

  std::vector<OfferId> expected;
  int sends = 0;
  bool using_memory = true;

 private:
  const Buffer address_ = Buffer(3);
};

class ConnectionOnLane : public ::testing::Test {
 protected:
  ConnectionOnLane() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    peer_.reset(ends[0]);
    connection_ = std::make_unique<Connection>(Fd(ends[1]), 1, ConnectionLimits{}, &lane_, events_);
  }
  Status hear(FrameKind kind, OfferId offer, Bytes body) {
    Buffer frame;
    const auto header = encode({static_cast<std::uint32_t>(body.size()), kind, offer});
    frame.insert(frame.end(), header.begin(), header.end());
    frame.insert(frame.end(), body.begin(), body.end());
    EXPECT_EQ(::send(peer_.get(), frame.data(), frame.size(), 0),
              static_cast<ssize_t>(frame.size()));
    return connection_->read();
  }
  void offer_of_ten_bytes() {
    ByteWriter size;
    size.put(std::uint64_t{10});
    ASSERT_TRUE(is_ok(hear(FrameKind::offer, 1, size.view())));
  }

  IdleLane lane_;
  std::vector<Event> events_;
  Fd peer_;
  std::unique_ptr<Connection> connection_;
  Buffer memory_ = Buffer(10);
};

TEST_F(ConnectionOnLane, DataFramesForAFetchByTheLaneEndIt) {
  ASSERT_TRUE(is_ok(hear(FrameKind::bulk, 0, Buffer(20))));
  offer_of_ten_bytes();
  ASSERT_TRUE(is_ok(connection_->fetch(1, memory_)));
  EXPECT_EQ(lane_.expected, std::vector<OfferId>{1});
  EXPECT_TRUE(fails_with(hear(FrameKind::data, 1, Buffer(10, std::byte{7})), Code::protocol));
  EXPECT_EQ(memory_, Buffer(10));
}

TEST_F(ConnectionOnLane, APeerWithoutALaneSendsData) {
  offer_of_ten_bytes();
  ASSERT_TRUE(is_ok(connection_->fetch(1, memory_)));
  EXPECT_TRUE(lane_.expected.empty());
  ASSERT_TRUE(is_ok(hear(FrameKind::data, 1, Buffer(10, std::byte{7}))));
  EXPECT_EQ(memory_, Buffer(10, std::byte{7}));
}

TEST_F(ConnectionOnLane, AFetchByALaneThatThePeerDoesNotHaveEndsIt) {
  const Buffer ours(10);
  ASSERT_TRUE(is_ok(connection_->offer({}, ours)));
  EXPECT_TRUE(fails_with(hear(FrameKind::fetch_bulk, 1, {}), Code::protocol));
  EXPECT_EQ(lane_.sends, 0);
}

TEST_F(ConnectionOnLane, OurMemoryIsFreeWhenThePeerHasItAndTheLaneLetGo) {
  ASSERT_TRUE(is_ok(hear(FrameKind::bulk, 0, Buffer(20))));
  const Buffer ours(10);
  for (const OfferId offer : {OfferId{1}, OfferId{2}}) {
    ASSERT_TRUE(is_ok(connection_->offer({}, ours)));
    ASSERT_TRUE(is_ok(hear(FrameKind::fetch_bulk, offer, {})));
  }
  ASSERT_TRUE(is_ok(connection_->bulk({BulkEvent::What::sent, 1, 1, {}})));
  ASSERT_TRUE(is_ok(hear(FrameKind::taken, 2, {})));
  EXPECT_TRUE(events_.empty()) << "each has half of it";
  ASSERT_TRUE(is_ok(hear(FrameKind::taken, 1, {})));
  ASSERT_TRUE(is_ok(connection_->bulk({BulkEvent::What::sent, 1, 2, {}})));
  EXPECT_EQ(events_.size(), 2u);
  EXPECT_FALSE(connection_->released());
  connection_->leave();
  EXPECT_TRUE(connection_->released());
}

TEST_F(ConnectionOnLane, TwoAddressesEndIt) {
  ASSERT_TRUE(is_ok(hear(FrameKind::bulk, 0, Buffer(20))));
  EXPECT_TRUE(fails_with(hear(FrameKind::bulk, 0, Buffer(20)), Code::protocol));
}

}  // namespace
}  // namespace backstay::net
