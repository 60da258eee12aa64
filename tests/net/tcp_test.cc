// What only TCP has: strangers, keys, versions, names, damaged frames, sleep.
#include "net/tcp.h"

#include <sys/socket.h>

#include <filesystem>
#include <thread>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net_world.h"
#include "support/seed.h"

namespace backstay::testing {
namespace {

const net::Secret& job_secret() {
  static const net::Secret secret = net::Secret::random();
  return secret;
}

std::unique_ptr<net::Transport> make_end(const std::string& identity = "end",
                                         double dead_after_s = 1,
                                         const net::Secret& secret = job_secret()) {
  auto end = net::make_tcp(
      {.secret = secret, .identity = identity, .device = "lo", .dead_after_s = dead_after_s});
  EXPECT_TRUE(is_ok(end));
  return std::move(end).value();
}

template <typename... Ends>
NetWorld world_of(Ends... ends) {
  NetUnderTest under;
  (under.ends.push_back(std::move(ends)), ...);
  return NetWorld(std::move(under));
}

// A peer that is no transport: it says whatever the test wants.
class RawPeer {
 public:
  RawPeer(NetWorld& world, const std::string& address) : world_(world) {
    const auto parts = net::split_address(address);
    net::SocketAddress to = net::address_of_device("lo").value();
    to.set_port(static_cast<std::uint16_t>(std::stoi(parts->port)));
    socket_.reset(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), to.get(), to.length), 0);
  }

  void say(Bytes bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Waits for `bytes` bytes; fewer if the other side ended the connection.
  Buffer hear(std::size_t bytes) {
    Buffer heard(bytes);
    std::size_t at = 0;
    EXPECT_TRUE(world_.until([&] {
      const ssize_t count = ::recv(socket_.get(), heard.data() + at, bytes - at, MSG_DONTWAIT);
      if (count > 0) at += static_cast<std::size_t>(count);
      ended_ = count == 0 || (count < 0 && errno != EAGAIN);
      return ended_ || at == bytes;
    }));
    heard.resize(at);
    return heard;
  }
  bool is_ended() {
    hear(1);
    return ended_;
  }
  // Proves itself as an agent would.
  void prove() {
    net::Handshake handshake(net::Role::caller, job_secret(), "raw", net::Nonce{});
    say(handshake.first());
    while (handshake.wants() > 0) {
      const auto step = handshake.take(hear(handshake.wants()));
      ASSERT_TRUE(is_ok(step.status));
      say(step.reply);
    }
  }
  void frame(std::uint32_t length, std::uint8_t kind, std::uint64_t offer, Bytes body = {}) {
    ByteWriter writer;
    writer.put(length);
    writer.put(std::uint32_t{kind});
    writer.put(offer);
    writer.put_bytes(body);
    say(writer.view());
  }

 private:
  NetWorld& world_;
  Fd socket_;
  bool ended_ = false;
};

TEST(Tcp, WhoeverIsNoAgentIsTurnedAway) {
  SCOPED_TRACE(test::replay());
  auto world = world_of(make_end());
  RawPeer stranger(world, world[0].facts().address);
  stranger.say(pattern(net::hello_bytes, test::seed()));
  EXPECT_EQ(stranger.hear(net::hello_bytes).size(), net::hello_bytes) << "it may know our version";
  EXPECT_TRUE(stranger.is_ended());
  EXPECT_TRUE(world.seen(0).empty());
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(all, {}));
}

TEST(Tcp, SilentStrangersNeitherStayNorKeepOthersOut) {
  auto world = world_of(make_end("a", 0.4), make_end("b", 20));
  std::vector<std::unique_ptr<RawPeer>> strangers;
  for (int i = 0; i < 200; ++i)
    strangers.push_back(std::make_unique<RawPeer>(world, world[0].facts().address));
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) world[0].progress();
  EXPECT_EQ(open_descriptors(), before + 64) << "the others wait in the kernel";
  world.join(1, 0);
  for (auto& one : strangers) EXPECT_TRUE(one->is_ended());
  EXPECT_EQ(world.count<net::Connected>(0), 1u);
}

TEST(Tcp, AGreetingMayComeByteByByte) {
  auto world = world_of(make_end("a"));
  RawPeer peer(world, world[0].facts().address);
  net::Handshake handshake(net::Role::caller, job_secret(), "slow", net::Nonce{});
  Buffer to_say = handshake.first();
  for (int piece = 0; piece < 2; ++piece) {
    for (const std::byte one : to_say) {
      peer.say({&one, 1});
      world[0].progress();
    }
    to_say = handshake.take(peer.hear(handshake.wants())).reply;
  }
  ASSERT_TRUE(world.until([&] { return world.count<net::Connected>(0) == 1; }));
  EXPECT_EQ(world.of<net::Connected>(0)[0]->identity, "slow");
}

TEST(Tcp, AnotherKeyIsToldSo) {
  auto world = world_of(make_end("a"), make_end("b", 1, net::Secret::random()));
  const auto peer = world[0].connect(world[1].facts().address);
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0, peer) == 1; }));
  const Status& status = world.of<net::Closed>(0)[0]->status;
  ASSERT_TRUE(fails_with(status, Code::permission));
  EXPECT_NE(status.error().message().find(world[1].facts().address), std::string::npos);
  EXPECT_NE(status.error().message().find("secret"), std::string::npos);
  EXPECT_TRUE(world.seen(1).empty()) << "a stranger shows in no event";
}

TEST(Tcp, AnotherVersionIsToldSo) {
  auto world = world_of(make_end("a"));
  RawPeer old(world, world[0].facts().address);
  net::Handshake handshake(net::Role::caller, job_secret(), "old", net::Nonce{}, 7);
  old.say(handshake.first());
  const auto step = handshake.take(old.hear(net::hello_bytes));
  ASSERT_TRUE(fails_with(step.status, Code::protocol));
  EXPECT_NE(step.status.error().message().find("version 1"), std::string::npos);
  EXPECT_TRUE(old.is_ended());
}

TEST(Tcp, ADamagedFrameEndsThatConnectionOnly) {
  struct Row {
    const char* what;
    std::uint32_t length;
    std::uint8_t kind;
    std::uint64_t offer;
    std::size_t body;
  };
  auto world = world_of(make_end("a"), make_end("b"));
  const auto [a, b] = world.join(1, 0);
  const Buffer memory = pattern(1000, 1);
  std::size_t closed = 0;
  for (const Row& row :
       {Row{"unknown kind", 0, 99, 0, 0}, Row{"a huge message", 0xFFFFFFFF, 2, 0, 0},
        Row{"a fetch of nothing", 0, 4, 77, 0}, Row{"a refusal of nothing", 0, 5, 77, 0},
        Row{"taken, but nothing was given", 0, 7, 1, 0},
        Row{"data that was not fetched", 10, 6, 1, 10},
        Row{"an offer with a number of its own", 8, 3, 5, 8},
        Row{"an offer of nothing", 8, 3, 1, 8}}) {
    SCOPED_TRACE(row.what);
    RawPeer peer(world, world[0].facts().address);
    peer.prove();
    ASSERT_TRUE(world.until([&] { return world.count<net::Connected>(0) == closed + 2; }));
    const auto id = world.of<net::Connected>(0).back()->peer;
    ASSERT_TRUE(is_ok(world[0].offer(id, {}, memory)));
    peer.frame(row.length, row.kind, row.offer, Buffer(row.body));
    ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0, id) == 1; }));
    EXPECT_TRUE(fails_with(world.of<net::Closed>(0, id)[0]->status, Code::protocol));
    EXPECT_EQ(world.count<net::Taken>(0, id), 1u);
    ++closed;
  }
  EXPECT_EQ(world.count<net::Closed>(0, b), 0u);
  ASSERT_TRUE(is_ok(world[1].send(a, memory)));
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Message>(0, b) == 1; }));
}

TEST(Tcp, TooManyOffersEndTheConnection) {
  auto world = world_of(make_end("a"));
  RawPeer peer(world, world[0].facts().address);
  peer.prove();
  ByteWriter size;
  size.put(std::uint64_t{1} << 30);
  const std::size_t most = world[0].facts().offers_max;
  for (std::uint64_t i = 1; i <= most + 1; ++i) peer.frame(8, 3, i, size.view());
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0) == 1; }));
  EXPECT_EQ(world.count<net::Offered>(0), most);
}

TEST(Tcp, APeerThatSendsMoreThanItOfferedIsClosed) {
  auto world = world_of(make_end("a"));
  RawPeer peer(world, world[0].facts().address);
  peer.prove();
  ByteWriter size;
  size.put(std::uint64_t{100});
  peer.frame(8, 3, 1, size.view());
  ASSERT_TRUE(world.until([&] { return world.count<net::Offered>(0) == 1; }));
  Buffer to(100);
  ASSERT_TRUE(is_ok(world[0].fetch(world.of<net::Offered>(0)[0]->peer, 1, to)));
  peer.frame(60, 6, 1, Buffer(60));
  peer.frame(60, 6, 1, Buffer(60));
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0) == 1; }));
  ASSERT_EQ(world.count<net::Fetched>(0), 1u);
  EXPECT_TRUE(fails_with(world.of<net::Fetched>(0)[0]->status, Code::protocol));
}

TEST(Tcp, APeerThatDiesInTheMiddleOfBulkData) {
  auto world = world_of(make_end("a"), make_end("b"));
  const auto [a, b] = world.join(0, 1);
  const Buffer from(std::size_t{64} << 20);
  Buffer to(from.size());
  ASSERT_TRUE(is_ok(world[0].offer(a, {}, from)));
  ASSERT_TRUE(world.until([&] { return world.count<net::Offered>(1) == 1; }));
  ASSERT_TRUE(is_ok(world[1].fetch(b, 1, to)));
  for (int i = 0; i < 5; ++i) world.step();
  world.destroy(0);
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(1) == 1; }));
  ASSERT_EQ(world.count<net::Fetched>(1), 1u);
  EXPECT_TRUE(fails_with(world.of<net::Fetched>(1)[0]->status, Code::agent_lost));
}

TEST(Tcp, OnesOwnPauseIsNotThePeersDeath) {
  auto world = world_of(make_end("a", 0.5), make_end("b", 0.5));
  const auto [a, b] = world.join(0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // the pause itself
  ASSERT_TRUE(is_ok(world[0].send(a, {})));
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Message>(1, b) == 1; }));
  EXPECT_EQ(world.count<net::Closed>(0) + world.count<net::Closed>(1), 0u);
}

Status closed_after(const std::string& address) {
  auto world = world_of(make_end());
  const auto peer = world[0].connect(address);
  EXPECT_TRUE(world.until([&] { return world.count<net::Closed>(0, peer) == 1; }));
  return world.of<net::Closed>(0)[0]->status;
}

TEST(Tcp, ANameThatDoesNotResolve) {
  const Status status = closed_after("no-such-node.invalid:7000");
  ASSERT_TRUE(fails_with(status, Code::unreachable));
  EXPECT_NE(status.error().message().find("no-such-node.invalid"), std::string::npos);
}

TEST(Tcp, AnAddressThatIsNone) { EXPECT_TRUE(fails_with(closed_after("node7"), Code::invalid)); }

TEST(Tcp, AHostThatCannotBeReached) {  // RFC 5737: no host has this address
  EXPECT_TRUE(fails_with(closed_after("192.0.2.1:7000"), Code::agent_lost));
}

TEST(Tcp, SetUpErrorsSayWhatIsWrong) {
  auto first = net::make_tcp({.secret = job_secret(), .identity = "a", .device = "lo"});
  ASSERT_TRUE(is_ok(first));
  const auto used =
      static_cast<std::uint16_t>(std::stoi(net::split_address((*first)->facts().address)->port));
  const auto second =
      net::make_tcp({.secret = job_secret(), .identity = "b", .device = "lo", .port = used});
  EXPECT_TRUE(fails_with(second, Code::port_in_use));
  EXPECT_TRUE(fails_with(net::make_tcp({.secret = job_secret(), .identity = "c", .device = "mlx9"}),
                         Code::not_found));
  EXPECT_TRUE(fails_with(net::make_tcp({.secret = job_secret(), .identity = std::string(200, 'x')}),
                         Code::invalid));
  EXPECT_TRUE(fails_with(
      net::make_tcp({.secret = job_secret(), .identity = "d", .dead_after_s = 0}), Code::invalid));
}

TEST(Tcp, WithoutADeviceItIsReachedByTheNameOfTheHost) {
  auto end = net::make_tcp({.secret = job_secret(), .identity = "a"});
  ASSERT_TRUE(is_ok(end));
  auto world = world_of(std::move(end).value(), make_end());
  const auto port = net::split_address(world[0].facts().address)->port;
  world[1].connect("localhost:" + port);
  EXPECT_TRUE(world.until([&] { return world.count<net::Connected>(1) == 1; }));
}

TEST(Tcp, AnIdleEndSleeps) {
  auto world = world_of(make_end("a"), make_end("b"));
  world.join(0, 1);
  EXPECT_LT(world.wakeups_in_a_second(), 60)
      << "10 ticks and 5 pings out and in for each would be 40";
}

TEST(Tcp, AnEndWithoutConnectionsSleepsForGood) {
  auto end = make_end();
  end->progress();
  pollfd one{end->facts().descriptor, POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 500), 0);
}

}  // namespace
}  // namespace backstay::testing
