// How the agents of a run hear of each other: ranks as threads, an agent in a thread on each node.
#include "client/neighbours.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <set>

#include "base/machine.h"
#include "session_fixture.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

class Introduction {
 public:
  Introduction(int node_count, int ranks_a_node) : nodes_(node_count), ranks_a_node_(ranks_a_node) {
    for (int node = 0; node < nodes_; ++node) {
      const std::string socket = world_.socket() + std::to_string(node);
      agents_.push_back(std::make_unique<FakeAgent>(socket, FakeAgent::Options{}));
    }
  }
  // What introduce_agents() said on each rank. `config` may differ from node to node.
  std::vector<Status> run(const std::function<Config(int node)>& config) {
    std::vector<Status> said(static_cast<std::size_t>(nodes_ * ranks_a_node_));
    ThreadGroup(nodes_ * ranks_a_node_, nodes_).run([&](const Group& group) {
      wire::Hello hello;
      hello.rank = static_cast<Rank>(group.rank());
      hello.ranks = static_cast<std::uint32_t>(group.ranks());
      hello.local_ranks = static_cast<std::uint32_t>(group.local_ranks());
      hello.node = static_cast<NodeId>(group.node());
      hello.nodes = static_cast<std::uint32_t>(group.nodes());
      auto opened =
          Connection::open(world_.socket() + std::to_string(group.node()), hello, no_deadline);
      ASSERT_TRUE(opened.ok()) << opened.error().to_string();
      said[static_cast<std::size_t>(group.rank())] =
          introduce_agents(group, **opened, config(group.node()));
      (*opened)->end();
    });
    return said;
  }
  // Read after run().
  std::vector<wire::Neighbour> told(int node) {
    FakeAgent& agent = *agents_[static_cast<std::size_t>(node)];
    agent.stop();
    return agent.neighbours;
  }

 private:
  const World world_;
  const int nodes_;
  const int ranks_a_node_;
  std::vector<std::unique_ptr<FakeAgent>> agents_;
};

TEST(Agreement, SaysWhoseErrorItIs) {
  for (const int hosts : {1, 2}) {
    std::string told;
    ThreadGroup(2, hosts).run([&](const Group& group) {
      const Status agreed =
          group.agree(group.rank() == 1 ? Status(Error(Code::io, "no")) : Status());
      ASSERT_FALSE(agreed.ok());
      if (group.rank() == 0) told = agreed.error().message();
    });
    EXPECT_EQ(told, hosts == 1 ? "rank 1: no" : "rank 1 (" + host_name() + "): no");
  }
}

TEST(Neighbours, EveryAgentIsToldOfAllOnce) {
  // More than fit into one message.
  for (const auto& [count, ranks_each] : {std::pair(2, 3), std::pair(103, 1)}) {
    Introduction all(count, ranks_each);
    const auto said = all.run([](int node) {
      Config config;
      config.protect.domain = "rack" + std::to_string(node / 2);
      return config;
    });
    for (const Status& status : said) EXPECT_TRUE(status.ok()) << status.error().to_string();
    for (const int node : {0, count - 1}) {
      const auto told = all.told(node);
      ASSERT_EQ(told.size(), static_cast<std::size_t>(count)) << node;
      for (int other = 0; other < count; ++other) {
        const wire::Neighbour& one = told[static_cast<std::size_t>(other)];
        EXPECT_EQ(one.node, static_cast<NodeId>(other));
        EXPECT_FALSE(one.address.empty());
        EXPECT_EQ(one.domain, "rack" + std::to_string(other / 2));
      }
    }
  }
}

TEST(Neighbours, OneNodesTroubleIsSaidOnAllRanksAndNobodyIsTold) {
  Introduction all(3, 2);
  const auto said = all.run([](int node) {
    Config config;
    if (node == 1) config.protect.domain = std::string(200, 'x');
    return config;
  });
  for (const Status& status : said) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::config);
    EXPECT_NE(status.error().message().find("protect.domain"), std::string::npos);
  }
  EXPECT_TRUE(all.told(0).empty());
}

TEST(Neighbours, ALoopbackAddressDoesNotReachAnotherHost) {
  for (const char* loopback : {"127.0.0.1:7000", "[::1]:7000"}) {
    Reach alone;
    EXPECT_TRUE(alone.add("a", loopback).ok());
    EXPECT_TRUE(alone.add("a", loopback).ok()) << "all nodes of the run are one host";
    const Status other = alone.add("b", "10.0.0.2:7000");
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code(), Code::config);
    EXPECT_EQ(other.error().message(),
              "network.device: no other host can reach the agent of a (" + std::string(loopback) +
                  "); name the device of the network between the hosts, or leave the key empty");
  }
  Reach good;
  EXPECT_TRUE(good.add("a", "10.0.0.1:7000").ok());
  EXPECT_TRUE(good.add("b", "10.0.0.2:7000").ok());
  EXPECT_FALSE(good.add("c", "127.0.0.1:7000").ok());
}

TEST(Neighbours, TwoHostsOfOneAddressDoNotReachEachOther) {
  Reach reach;
  EXPECT_TRUE(reach.add("a", "172.17.0.1:7000").ok());
  EXPECT_TRUE(reach.add("a", "172.17.0.1:7001").ok()) << "two nodes of the run on one host";
  const Status other = reach.add("b", "172.17.0.1:7000");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::config);
  EXPECT_EQ(
      other.error().message(),
      "network.device: the agents of a and b have one address, 172.17.0.1; name the device of "
      "the network between the hosts");
}

TEST(Neighbours, OneSecretForAllAndAnotherForTheNextRun) {
  std::mutex mutex;
  std::set<std::string> secrets;
  for (int round = 0; round < 2; ++round) {
    ThreadGroup(4, 2).run([&](const Group& group) {
      const auto secret = agree_on_secret(group);
      ASSERT_TRUE(secret.ok());
      EXPECT_EQ(secret->size(), 64u);
      EXPECT_EQ(secret->find_first_not_of("0123456789abcdef"), std::string::npos);
      const std::scoped_lock lock(mutex);
      secrets.insert(*secret);
    });
    EXPECT_EQ(secrets.size(), static_cast<std::size_t>(round + 1));
  }
  ThreadGroup(2, 1).run([](const Group& group) { EXPECT_EQ(agree_on_secret(group).value(), ""); });
}

}  // namespace
}  // namespace backstay::client::test
