// What a restarted job does with protection that the nodes left are too few for.
#include "client/fewer_nodes.h"

#include <gtest/gtest.h>

namespace backstay::client {
namespace {

struct Outcome {
  std::uint32_t replicas;
  std::string parity;
  bool told;
  bool operator==(const Outcome&) const = default;
};

Outcome on(int nodes, std::uint32_t replicas, const std::string& parity, const char* attempt) {
  Config::Protect protect;
  protect.replicas = replicas;
  protect.parity = parity;
  const std::string told = keep_what_nodes_allow(protect, nodes, attempt);
  return {protect.replicas, protect.parity, !told.empty()};
}

TEST(FewerNodes, AtAJobsStartNothingIsChanged) {
  EXPECT_EQ(on(2, 2, "", "0"), (Outcome{2, "", false}));
  EXPECT_EQ(on(2, 2, "", nullptr), (Outcome{2, "", false}));
  EXPECT_EQ(on(2, 1, "2,2", "0"), (Outcome{1, "2,2", false}));
}

TEST(FewerNodes, ARestartedJobKeepsWhatIsPossible) {
  EXPECT_EQ(on(2, 2, "", "1"), (Outcome{1, "", true}));
  EXPECT_EQ(on(3, 4, "", "2"), (Outcome{2, "", true}));
  EXPECT_EQ(on(2, 1, "2,2", "1"), (Outcome{1, "", true}));
  EXPECT_EQ(on(3, 1, "2,2", "1"), (Outcome{2, "", true})) << "two losses are survived as before";
  EXPECT_EQ(on(3, 1, "3,1", "1"), (Outcome{1, "", true}));
  EXPECT_EQ(on(1, 1, "3,1", "1"), (Outcome{1, "", true})) << "one node needs no other";
}

TEST(FewerNodes, WhatIsPossibleStays) {
  EXPECT_EQ(on(3, 2, "", "1"), (Outcome{2, "", false}));
  EXPECT_EQ(on(4, 1, "2,2", "1"), (Outcome{1, "2,2", false}));
  EXPECT_EQ(on(2, 0, "", "1"), (Outcome{0, "", false}));
  EXPECT_EQ(on(1, 1, "", "1"), (Outcome{1, "", false}));
}

TEST(FewerNodes, WhatIsNoParityIsLeftToTheAgentToRefuse) {
  for (const char* parity : {"x", ",", "2", "a,b"})
    EXPECT_EQ(on(2, 1, parity, "1"), (Outcome{1, parity, false})) << parity;
}

TEST(FewerNodes, SaysWhatItWasAndWhatItIs) {
  Config::Protect protect;
  protect.parity = "2,2";
  EXPECT_EQ(keep_what_nodes_allow(protect, 2, "1"),
            "2 nodes are left, too few for protect.parity = \"2,2\": the job goes on with "
            "protect.replicas = 1");
}

}  // namespace
}  // namespace backstay::client
