#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/clock.h"
#include "expect_status.h"
#include "meet/member.h"
#include "meet/server.h"
#include "net/address.h"

namespace backstay::meet {
namespace {

using testing::fails_with;
using testing::is_ok;

using Environment = std::map<std::string, std::string>;

Variables of(const Environment& set) {
  return [&set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
}

std::unique_ptr<Server> serve(bool several_hosts, double patience_s = 60) {
  auto server = Server::start({several_hosts, "", patience_s});
  EXPECT_TRUE(is_ok(server));
  return std::move(server).value();
}

Environment environment(const Server& server) {
  return {{addresses_variable, server.addresses()}, {secret_variable, server.secret()}};
}

using Joined = Result<std::unique_ptr<Member>>;

Joined join(const Environment& set, std::uint32_t rank, std::uint32_t ranks,
            const std::string& host = "here") {
  return Member::join(of(set), Place{rank, ranks}, host);
}

// Runs the body on each rank, in a thread of its own.
void as_ranks(const Server& server, std::uint32_t ranks,
              const std::function<void(Member&, std::uint32_t)>& body) {
  const Environment set = environment(server);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto member = join(set, rank, ranks, rank % 2 == 0 ? "even" : "odd");
      ASSERT_TRUE(is_ok(member));
      body(**member, rank);
    });
  for (std::thread& thread : threads) thread.join();
}

class MeetSockets : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, MeetSockets, ::testing::Values(false, true),
                         [](const auto& one) { return one.param ? "tcp" : "unix"; });

TEST_P(MeetSockets, RanksAreAGroup) {
  const auto server = serve(GetParam());
  as_ranks(*server, 9, [](Member& member, std::uint32_t rank) {
    const backstay_group group = member.group();
    EXPECT_EQ(group.rank, static_cast<int>(rank));
    EXPECT_EQ(group.ranks, 9);
    EXPECT_EQ(group.nodes, 2);
    EXPECT_EQ(group.node, static_cast<int>(rank % 2));
    EXPECT_EQ(group.local_rank, static_cast<int>(rank / 2));
    EXPECT_EQ(group.local_ranks, rank % 2 == 0 ? 5 : 4);
    for (int round = 0; round < 50; ++round) {
      std::int64_t value = rank == 7 ? -round : round + static_cast<int>(rank);
      ASSERT_EQ(group.minimum(group.context, &value), 0);
      EXPECT_EQ(value, -round);
      std::vector<char> bytes(round * 1000, rank == 3 ? 'x' : '-');
      ASSERT_EQ(group.broadcast(group.context, bytes.data(), bytes.size(), 3), 0);
      EXPECT_EQ(bytes, std::vector<char>(bytes.size(), 'x'));
    }
    std::int64_t last = 0;
    EXPECT_EQ(group.minimum(group.context, &last), 0);
    member.leave(0);
  });
  EXPECT_FALSE(server->loss());
}

TEST_P(MeetSockets, AWaitEndsWithTheRankThatIsWaitedFor) {
  const auto server = serve(GetParam());
  as_ranks(*server, 3, [](Member& member, std::uint32_t rank) {
    if (rank == 1) return;  // its connection ends
    const backstay_group group = member.group();
    std::int64_t value = 0;
    EXPECT_NE(group.minimum(group.context, &value), 0);
    EXPECT_EQ(member.over(), "rank 1 on odd is gone");
    EXPECT_FALSE(member.without_server());
    EXPECT_NE(group.minimum(group.context, &value), 0) << "for good";
  });
  EXPECT_EQ(server->loss()->text(), "rank 1 on odd is gone");
}

TEST_P(MeetSockets, AFailedProgramEndsTheGroup) {
  const auto server = serve(GetParam());
  as_ranks(*server, 2, [](Member& member, std::uint32_t rank) {
    if (rank == 1) return member.leave(139);
    const std::uint64_t deadline = deadline_in(30);
    while (member.over().empty() && system_clock().monotonic_ns() < deadline) member.look();
    EXPECT_EQ(member.over(), "rank 1 on odd has ended with exit code 139");
  });
}

TEST_P(MeetSockets, TheServersEndIsNoticed) {
  auto server = serve(GetParam());
  as_ranks(*server, 2, [&](Member& member, std::uint32_t rank) {
    const backstay_group group = member.group();
    std::int64_t value = 0;
    ASSERT_EQ(group.minimum(group.context, &value), 0);
    if (rank == 0) server.reset();
    EXPECT_NE(group.minimum(group.context, &value), 0);
    EXPECT_TRUE(member.without_server());
  });
}

TEST_P(MeetSockets, WhoDoesNotKnowTheSecretIsRefused) {
  const auto server = serve(GetParam());
  Environment set = environment(*server);
  char& digit = set[secret_variable].front();
  digit = digit == '0' ? '1' : '0';
  const auto refused = join(set, 0, 1);
  EXPECT_TRUE(fails_with(refused, Code::permission));
  set[secret_variable] = "short";
  EXPECT_TRUE(fails_with(join(set, 0, 1), Code::invalid));
  set.erase(secret_variable);
  EXPECT_TRUE(fails_with(join(set, 0, 1), Code::invalid));
  EXPECT_TRUE(is_ok(join(environment(*server), 0, 1)));
}

TEST_P(MeetSockets, RanksThatDoNotFitAreTold) {
  const auto server = serve(GetParam(), 0.3);
  const Environment set = environment(*server);
  Joined first(Error(Code::internal, ""));
  std::thread waits([&] { first = join(set, 0, 3); });
  // Whoever is second is refused: one of the two is here first.
  const auto more = join(set, 1, 2);
  waits.join();
  EXPECT_FALSE(more.ok());
  EXPECT_FALSE(first.ok());
  EXPECT_TRUE(server->loss()) << "the others have not come";
}

TEST(MeetSocketsTcp, AStrangerIsIgnored) {
  const auto server = serve(true);
  const std::string& text = server->addresses();
  const auto parts = net::split_address(text.substr(0, text.find(',')));
  ASSERT_TRUE(is_ok(parts));
  const int port = std::stoi(parts->port);
  std::vector<Fd> strangers;
  for (int i = 0; i < 70; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string words(i * 7, 'G');
    ::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
    strangers.push_back(std::move(socket));
  }
  // Those that say nothing hold the door for 5 s.
  const auto member = join(environment(*server), 0, 1);
  EXPECT_TRUE(is_ok(member));
  EXPECT_FALSE(server->loss());
}

TEST(MeetSocketsTcp, AnUnknownDeviceIsNamed) {
  EXPECT_TRUE(fails_with(Server::start({true, "no-such-device", 1}), Code::not_found));
}

TEST(MeetSocketsTcp, TheNextAddressIsTried) {
  const auto server = serve(true);
  Environment set = environment(*server);
  set[addresses_variable] = "unix:nobody-listens-there,127.0.0.1:1," + set[addresses_variable];
  EXPECT_TRUE(is_ok(join(set, 0, 1)));
  set[addresses_variable] = "unix:nobody-listens-there";
  EXPECT_TRUE(fails_with(join(set, 0, 1), Code::agent_lost));
  set[addresses_variable] = "nonsense";
  EXPECT_TRUE(fails_with(join(set, 0, 1), Code::invalid));
}

}  // namespace
}  // namespace backstay::meet
