#include "protect/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "protect/domains.h"
#include "protect/made_domains.h"

namespace backstay::protect {
namespace {

using backstay::test::replay;
using namespace test;
using testing::HasSubstr;

std::vector<std::size_t> sizes_of(const Groups& groups) {
  std::vector<std::size_t> sizes;
  for (const auto& members : groups) sizes.push_back(members.size());
  return sizes;
}

std::vector<std::size_t> group_sizes(std::size_t nodes, ParityShape shape) {
  return sizes_of(make_groups(shape, no_domains(nodes)).value());
}

TEST(Groups, TheLastOnesAreSmaller) {
  using testing::ElementsAre;
  EXPECT_THAT(group_sizes(8, {3, 1}), ElementsAre(4, 4));
  EXPECT_THAT(group_sizes(11, {3, 1}), ElementsAre(4, 4, 3));
  EXPECT_THAT(group_sizes(9, {3, 1}), ElementsAre(3, 3, 3));
  EXPECT_THAT(group_sizes(5, {2, 2}), ElementsAre(5));  // two nodes cannot lose two
}

TEST(Groups, HoldEveryNodeOnceAndSpreadDomainsEvenly) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 2000; ++i) {
    const ParityShape shape{static_cast<std::uint32_t>(random.between(1, 12)),
                            static_cast<std::uint32_t>(random.between(1, parity_max))};
    const std::size_t n = random.between(shape.members(), 200);
    const Labels labels = random_domains(n, random.between(1, 30), random);
    SCOPED_TRACE(testing::Message() << n << " (" << shape.data << ", " << shape.parity << ")");
    const Groups groups = make_groups(shape, labels).value();
    const std::vector<std::uint32_t> domain_of = number_domains(labels);
    std::map<std::uint32_t, std::size_t> nodes_in;
    for (const std::uint32_t domain : domain_of) ++nodes_in[domain];
    std::vector<int> seen(n, 0);
    for (const auto& members : groups) {
      ASSERT_GT(members.size(), shape.parity);
      ASSERT_LE(members.size(), std::size_t{2} * shape.members());
      std::map<std::uint32_t, std::size_t> here;
      for (const NodeId node : members) {
        ++seen.at(node);
        ++here[domain_of[node]];
      }
      for (const auto& [domain, nodes] : nodes_in) {
        ASSERT_GE(here[domain], nodes / groups.size());
        ASSERT_LE(here[domain], (nodes + groups.size() - 1) / groups.size());
      }
    }
    ASSERT_THAT(seen, testing::Each(1));
    const auto sizes = sizes_of(groups);
    ASSERT_LE(sizes.front() - sizes.back(), 1u);
    ASSERT_TRUE(std::ranges::is_sorted(sizes, std::greater{}));
    ASSERT_EQ(groups, make_groups(shape, labels).value());
  }
}

TEST(Groups, SayWhenDomainsCannotBeKeptApart) {
  const Labels racks = of_sizes({4, 4, 4, 4});
  EXPECT_EQ(groups_relaxed(make_groups({3, 1}, racks).value(), 1, racks), "");
  const Labels large = of_sizes({8, 4, 4});
  const std::string text = groups_relaxed(make_groups({3, 1}, large).value(), 1, large);
  EXPECT_THAT(text, HasSubstr("relaxed for 4 of 4 groups, of which 4 would not survive"));
  EXPECT_THAT(groups_relaxed(make_groups({2, 2}, large).value(), 2, large),
              HasSubstr("of which 0 would not survive"));
}

TEST(Groups, OfImpossibleShapesAreRefused) {
  for (const ParityShape shape :
       {ParityShape{0, 1}, {3, 0}, {3, 5}, {127, 2}, {4'294'967'295u, 1}}) {
    const auto refused = make_groups(shape, no_domains(300));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::invalid);
    EXPECT_THAT(refused.error().message(), HasSubstr("1 to 4 parity"));
  }
  const auto refused = make_groups({3, 1}, no_domains(3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::few_nodes);
  EXPECT_THAT(refused.error().message(), HasSubstr("needs at least 4 nodes, there are 3"));
}

}  // namespace
}  // namespace backstay::protect
