// What every placement keeps, for every size and any domains.
#include "protect/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "protect/domains.h"
#include "protect/made_domains.h"
#include "protect/place.h"

namespace backstay::protect {
namespace {

using backstay::test::replay;
using namespace test;

// {2, 3, .., 300, then steps to 5000}
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all;
  for (std::size_t n = 2; n <= 300; ++n) all.push_back(n);
  for (const std::size_t n : {301, 499, 512, 1000, 1023, 2047, 2048, 3001, 4096, 5000})
    all.push_back(n);
  return all;
}

// Rule 1: no node keeps its own replica, none twice, each keeps exactly r.
void expect_balanced(const Placement& placement) {
  std::vector<std::uint32_t> kept(placement.nodes(), 0);
  for (NodeId node = 0; node < placement.nodes(); ++node) {
    const auto row = placement.of(node);
    ASSERT_EQ(row[0], node);
    ASSERT_EQ(std::set(row.begin(), row.end()).size(), row.size()) << "node " << node;
    for (const NodeId holder : row.subspan(1)) ++kept.at(holder);
  }
  ASSERT_THAT(kept, ::testing::Each(placement.copies() - 1));
}

// Rules 2 and 3: a domain of s nodes has floor or ceil of (r + 1) s/n copies of each segment. With
// (r + 1) s <= n that is "at most one".
void expect_spread(const Placement& placement, const Labels& labels) {
  const std::vector<std::uint32_t> domains = number_domains(labels);
  std::map<std::uint32_t, std::uint64_t> size;
  for (const std::uint32_t domain : domains) ++size[domain];
  const std::uint64_t n = placement.nodes();
  for (NodeId node = 0; node < n; ++node) {
    std::map<std::uint32_t, std::uint64_t> copies;
    for (const NodeId holder : placement.of(node)) ++copies[domains[holder]];
    for (const auto& [domain, nodes] : size) {
      const std::uint64_t share = placement.copies() * nodes;
      const auto found = copies.find(domain);
      const std::uint64_t count = found == copies.end() ? 0 : found->second;
      ASSERT_GE(count, share / n) << "node " << node << ", domain of " << nodes;
      ASSERT_LE(count, (share + n - 1) / n) << "node " << node << ", domain of " << nodes;
    }
  }
}

TEST(Placement, OfAnySizeIsBalanced) {
  for (const std::size_t n : sizes()) {
    for (std::uint32_t r = 1; r <= 6 && r < n; ++r) {
      SCOPED_TRACE(testing::Message() << n << " nodes, " << r << " replicas");
      const Placement placement = place(n + r, r, no_domains(n));
      ASSERT_NO_FATAL_FAILURE(expect_balanced(placement));
      ASSERT_TRUE(relaxation(placement, no_domains(n)).text().empty());
    }
  }
}

TEST(Placement, OfAnyDomainsIsBalancedAndSpread) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (const std::size_t n : sizes()) {
    for (std::uint32_t r = 1; r <= 6 && r < n; ++r) {
      const std::size_t domains = random.between(1, std::min<std::size_t>(n, 40));
      SCOPED_TRACE(testing::Message() << n << " nodes, " << r << " replicas, " << domains);
      const Labels labels = random_domains(n, domains, random);
      const Placement placement = place(n, r, labels);
      ASSERT_NO_FATAL_FAILURE(expect_balanced(placement));
      ASSERT_NO_FATAL_FAILURE(expect_spread(placement, labels));
    }
  }
}

TEST(Placement, WithSmallDomainsNoCopiesShareOne) {
  for (std::uint32_t r = 1; r <= 6; ++r) {
    const Labels labels = of_sizes(std::vector<std::size_t>(r + 1, 5));
    const Relaxation none = relaxation(place(r, r, labels), labels);
    EXPECT_TRUE(none.sharing.empty()) << r;
    EXPECT_EQ(none.text(), "");
  }
}

TEST(Placement, OfOneDomainWithMostNodesRelaxesAsLittleAsPossible) {
  // 8 of 12 nodes: the 4 others take one replica each of 4 of the 8, the other 4 stay in the
  // domain.
  const Labels labels = of_sizes({8, 4});
  const Relaxation found = relaxation(place(9, 1, labels), labels);
  EXPECT_EQ(found.sharing.size(), 4u);
  EXPECT_EQ(found.exposed, found.sharing);
  EXPECT_THAT(found.text(), testing::HasSubstr("domain \"0\" has 8 nodes: relaxed for 4 nodes"));
  EXPECT_THAT(found.text(), testing::HasSubstr("for 4 of them"));
}

TEST(Placement, OfTwoDomainsAndThreeReplicasHasTwoCopiesInEach) {
  const Labels labels = of_sizes({6, 6});
  const Relaxation found = relaxation(place(1, 3, labels), labels);
  EXPECT_EQ(found.sharing.size(), 12u);
  EXPECT_TRUE(found.exposed.empty());
  EXPECT_THAT(found.text(), testing::Not(testing::HasSubstr("all copies")));
}

TEST(Placement, OfOneDomainExposesAll) {
  const Labels labels = of_sizes({5});
  EXPECT_EQ(relaxation(place(1, 2, labels), labels).exposed.size(), 5u);
}

TEST(Placement, WithoutReplicasIsEachNodeAlone) {
  const Placement placement = place(1, 0, no_domains(3));
  EXPECT_EQ(placement.copies(), 1u);
  EXPECT_TRUE(relaxation(placement, no_domains(3)).text().empty());
}

TEST(Placement, OfTooFewNodesIsRefusedAndSaysWhatToDo) {
  for (const std::uint32_t nodes : {0u, 1u, 4u}) {
    const auto refused = place_replicas({1, 4, no_domains(nodes)});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::few_nodes);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("at least 5 nodes"));
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("protect.replicas"));
  }
}

TEST(Placement, IsTheSameForTheSameSeedAndDiffersForAnother) {
  const Labels labels = of_sizes({20, 20, 24});
  EXPECT_EQ(place(5, 2, labels), place(5, 2, labels));
  const Placement one = place(5, 2, labels);
  const Placement two = place(6, 2, labels);
  int same = 0;
  for (NodeId node = 0; node < 64; ++node) same += one.of(node)[1] == two.of(node)[1] ? 1 : 0;
  EXPECT_LT(same, 16);
}

}  // namespace
}  // namespace backstay::protect
