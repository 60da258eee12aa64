// Ranks of one node that were configured differently: refused, before they wait for each other in
// the agent.
#include "client/node_settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "thread_group.h"

namespace backstay::client::test {
namespace {

struct Seen {
  std::string socket = "/run/agent.sock";
  std::string dir = "/store";
};

// Four ranks on two nodes.
std::vector<Status> check(const std::vector<Seen>& seen) {
  std::vector<Status> said(seen.size());
  ThreadGroup(static_cast<int>(seen.size()), 2).run([&](const Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    Config config;
    config.storage.dir = seen[rank].dir;
    said[rank] = check_node_settings(group, config, seen[rank].socket);
  });
  return said;
}

TEST(NodeSettings, MayDifferBetweenNodes) {
  for (const Status& said : check({{}, {}, {}, {}})) EXPECT_TRUE(said.ok());
  const Seen other{"/run/other.sock", "/other"};
  for (const Status& said : check({{}, {}, other, other})) EXPECT_TRUE(said.ok());
}

TEST(NodeSettings, AreComparedAsTheAgentComparesThem) {
  for (const char* same : {"/./store", "/store/", "//store//", "/x/../store/."})
    for (const Status& said : check({{}, {"/run/agent.sock", same}, {}, {}}))
      EXPECT_TRUE(said.ok()) << same;
}

TEST(NodeSettings, ThatDifferOnANodeAreRefusedOnAllRanks) {
  struct Case {
    Seen seen;
    const char* key;
    std::string values[2];
  };
  for (const Case& one : {Case{{"/run/agent.sock", "/other"}, "storage.dir", {"/store", "/other"}},
                          Case{{"/run/other.sock", "/store"},
                               "agent.socket",
                               {"/run/agent.sock", "/run/other.sock"}}}) {
    for (const Status& said : check({{}, {}, {}, one.seen})) {
      ASSERT_FALSE(said.ok());
      EXPECT_EQ(said.error().code(), Code::config);
      for (const std::string& word :
           {std::string(one.key), "rank 2 has " + one.values[0], "rank 3 has " + one.values[1]}) {
        EXPECT_NE(said.error().message().find(word), std::string::npos) << said.error().message();
      }
    }
  }
}

}  // namespace
}  // namespace backstay::client::test
