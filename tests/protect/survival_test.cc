// Counts against trying every set of one, two and three nodes.
#include "protect/survival.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "protect/made_domains.h"
#include "protect/takeover.h"

namespace backstay::protect {
namespace {

using backstay::test::replay;
using namespace test;
using Alive = std::vector<bool>;
using Loses = std::function<bool(const Alive&)>;

// Calls `with` for every set of `losses` living nodes from `first` on, taken out of `alive`.
void each_loss(Alive& alive, std::size_t losses, std::size_t first,
               const std::function<void()>& with) {
  if (losses == 0) return with();
  for (std::size_t node = first; node < alive.size(); ++node) {
    if (!alive[node]) continue;
    alive[node] = false;
    each_loss(alive, losses - 1, node + 1, with);
    alive[node] = true;
  }
}

void expect_counted(const Survival& survival, Alive alive, const Loses& loses) {
  ASSERT_EQ(survival.gone.empty(), !loses(alive));
  if (!survival.gone.empty()) return;
  for (std::size_t losses = 1; losses <= 3; ++losses) {
    const LossCount& count = survival.of_nodes.at(losses - 1);
    std::uint64_t sets = 0;
    std::uint64_t fatal = 0;
    each_loss(alive, losses, 0, [&] {
      ++sets;
      fatal += loses(alive) ? 1 : 0;
    });
    ASSERT_EQ(count.sets, sets);
    ASSERT_EQ(count.fatal, fatal) << "of " << losses;
    ASSERT_EQ(count.example.empty(), fatal == 0);
    ASSERT_LE(count.example.size(), losses);
    Alive without = alive;
    for (const NodeId node : count.example) without.at(node) = false;
    if (fatal > 0) {
      ASSERT_TRUE(loses(without));
    }
  }
}

Alive random_alive(std::size_t nodes, backstay::test::Random& random) {
  Alive alive(nodes);
  const std::uint64_t one_in = random.between(2, 30);
  for (std::size_t node = 0; node < nodes; ++node) alive[node] = random.between(1, one_in) != 1;
  return alive;
}

TEST(Survival, OfReplicasIsWhatEverySetShows) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 300; ++i) {
    const std::size_t n = random.between(2, 18);
    const auto r = static_cast<std::uint32_t>(random.between(0, std::min<std::size_t>(3, n - 1)));
    const Placement placement = place_replicas({random.between(0, 1000), r, no_domains(n)}).value();
    const Alive alive = random_alive(n + random.between(0, 2), random);
    expect_counted(survival_of(placement, alive), alive, [&](const Alive& now) {
      for (NodeId segment = 0; segment < n; ++segment) {
        const auto row = placement.of(segment);
        if (std::none_of(row.begin(), row.end(), [&](NodeId node) { return now[node]; }))
          return true;
      }
      return false;
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Survival, OfParityIsWhatEverySetShows) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 300; ++i) {
    const ParityShape shape{static_cast<std::uint32_t>(random.between(1, 4)),
                            static_cast<std::uint32_t>(random.between(1, parity_max))};
    const std::size_t n = random.between(shape.members(), 18);
    const Groups groups = make_groups(shape, no_domains(n)).value();
    const Alive alive = random_alive(n + random.between(0, 2), random);
    expect_counted(survival_of(groups, shape.parity, alive), alive, [&](const Alive& now) {
      return std::ranges::any_of(groups, [&](const auto& members) {
        return std::ranges::count_if(members, [&](NodeId node) { return !now[node]; }) >
               static_cast<std::ptrdiff_t>(shape.parity);
      });
    });
    if (HasFatalFailure()) return;
  }
}

struct Kept {  // as every node has it once a version is protected
  std::vector<std::vector<NodeId>> holders;
  std::vector<ParityThere> groups;
};

Kept all_kept(const Groups& groups, std::uint32_t parity, std::size_t nodes) {
  Kept kept;
  for (NodeId node = 0; node < nodes; ++node) kept.holders.push_back({node});
  for (const auto& members : groups) {
    ParityThere there{members, parity, {}};
    for (const NodeId member : members) there.holders.push_back({member});
    kept.groups.push_back(std::move(there));
  }
  return kept;
}

TEST(Survival, OfParityByTryingIsThatOfItsGroups) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 30; ++i) {
    const auto parity = static_cast<std::uint32_t>(random.between(1, 3));
    const ParityShape shape{static_cast<std::uint32_t>(random.between(1, 4)), parity};
    const auto nodes = static_cast<std::size_t>(random.between(shape.members(), 14));
    const Groups groups = make_groups(shape, no_domains(nodes)).value();
    const Alive alive = random_alive(nodes, random);
    const Kept kept = all_kept(groups, parity, nodes);
    const Survival tried = survival_of(kept.holders, kept.groups, alive);
    Survival counted = survival_of(groups, parity, alive);
    std::ranges::sort(counted.gone);
    ASSERT_EQ(tried.gone, counted.gone);
    if (!tried.gone.empty()) continue;
    for (std::size_t losses = 0; losses < 3; ++losses) {
      EXPECT_EQ(tried.of_nodes.at(losses).sets, counted.of_nodes.at(losses).sets);
      EXPECT_EQ(tried.of_nodes.at(losses).fatal, counted.of_nodes.at(losses).fatal);
    }
  }
}

TEST(Survival, ParityBesideCopiesAndParityThatIsMissing) {
  const Groups groups{{0, 1, 2}};
  Kept kept = all_kept(groups, 1, 3);
  Alive alive{true, false, true, true};  // node 1 is lost, node 3 a spare
  EXPECT_EQ(survival_of(kept.holders, kept.groups, alive).of_nodes[0].fatal, 2u);
  kept.holders[1] = {1, 3};  // its segment was rebuilt there, its parity was not
  const Survival rebuilt = survival_of(kept.holders, kept.groups, alive);
  // Without node 0: segment 0 is in stripes 1 and 2, of which one has its parity on node 1.
  EXPECT_EQ(rebuilt.of_nodes[0].fatal, 2u);
  EXPECT_EQ(rebuilt.of_nodes[0].example, (std::vector<NodeId>{0}));
  kept.groups[0].holders[1] = {3};
  EXPECT_EQ(survival_of(kept.holders, kept.groups, alive).of_nodes[0].fatal, 0u);
  kept.groups[0].holders[2].clear();
  EXPECT_GT(survival_of(kept.holders, kept.groups, alive).of_nodes[0].fatal, 0u);
}

TEST(Survival, IsToldInOneLine) {
  const Alive four(4, true);
  const Groups groups = make_groups({3, 1}, no_domains(4)).value();
  EXPECT_EQ(survival_of(groups, 1, four).text(),
            "any 1 of 4 nodes: yes; any 2: 6 of 6 sets lose data, such as {0, 1}; "
            "any 3: 4 of 4 sets lose data, such as {0, 1}");
  const Placement alone = place_replicas({1, 0, no_domains(1)}).value();
  EXPECT_EQ(survival_of(alone, {true}).text(),
            "any 1 of 1 node: 1 of 1 sets lose data, such as {0}");
  EXPECT_EQ(survival_of(alone, {false}).text(), "the data of 1 node is lost");
}

TEST(Survival, IsWholeAgainAfterATakeover) {
  const Placement before = place_replicas({1, 2, no_domains(30)}).value();
  Alive alive(30, true);
  alive[3] = alive[17] = false;
  EXPECT_GT(survival_of(before, alive).of_nodes[1].fatal, 0u);
  const Placement after = take_over(before, {no_domains(30), alive, 1});
  EXPECT_EQ(survival_of(after, alive).of_nodes[1].fatal, 0u);
}

// 100 000 nodes with one replica: each pair is fatal but for those that are there twice.
TEST(Survival, OfManyNodesIsCountedWithoutTryingThem) {
  constexpr std::uint64_t n = 100'000;
  const Placement placement = place_replicas({1, 1, no_domains(n)}).value();
  const Survival survival = survival_of(placement, Alive(n, true));
  EXPECT_EQ(survival.of_nodes[0].fatal, 0u);
  EXPECT_EQ(survival.of_nodes[1].sets, n * (n - 1) / 2);
  EXPECT_NEAR(static_cast<double>(survival.of_nodes[1].fatal), n, 10);
  EXPECT_NEAR(static_cast<double>(survival.of_nodes[2].fatal), 1e10, 1e7);
}

}  // namespace
}  // namespace backstay::protect
