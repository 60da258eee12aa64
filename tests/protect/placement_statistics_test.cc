// Placements of many seeds: every other node is equally likely to keep a replica, pairs of nodes
// are equally likely to keep the same one, fatal sets do not repeat, and time grows with n * r
// only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "protect/made_domains.h"
#include "protect/place.h"
#include "protect/placement.h"

namespace backstay::protect {
namespace {

using namespace test;

constexpr int draws = 3000;

// Chi-square of counts that should all be alike.
double chi_square(const std::vector<double>& seen) {
  double sum = 0;
  for (const double count : seen) sum += count;
  const double expected = sum / static_cast<double>(seen.size());
  double chi = 0;
  for (const double count : seen) chi += (count - expected) * (count - expected) / expected;
  return chi;
}

// Five standard deviations above the mean: mean df, variance 2 df. The counts are not quite
// independent (each column of a draw is a permutation), which lowers chi-square.
double limit(std::size_t cells) {
  const auto df = static_cast<double>(cells - 1);
  return df + 5 * std::sqrt(2 * df);
}

TEST(PlacementStatistics, AllDistancesAreEquallyLikely) {
  for (const std::uint32_t n : {5u, 16u, 61u, 64u}) {
    for (const std::uint32_t r : {1u, 2u, 3u}) {
      std::vector<double> seen(n - 1, 0);
      for (int seed = 0; seed < draws; ++seed) {
        const Placement placement = place(seed, r, no_domains(n));
        for (NodeId node = 0; node < n; ++node) {
          for (const NodeId holder : placement.of(node).subspan(1))
            ++seen[(holder + n - node - 1) % n];
        }
      }
      EXPECT_LT(chi_square(seen), limit(seen.size())) << n << " nodes, " << r << " replicas";
    }
  }
}

TEST(PlacementStatistics, AllPairsOfNodesKeepTheSameReplicaEquallyOften) {
  for (const std::uint32_t n : {7u, 16u, 33u}) {
    std::vector<double> seen(n * (n - 1) / 2, 0);
    for (int seed = 0; seed < draws; ++seed) {
      const Placement placement = place(seed, 2, no_domains(n));
      for (NodeId node = 0; node < n; ++node) {
        const NodeId low = std::min(placement.of(node)[1], placement.of(node)[2]);
        const NodeId high = std::max(placement.of(node)[1], placement.of(node)[2]);
        ++seen[high * (high - 1) / 2 + low];
      }
    }
    EXPECT_LT(chi_square(seen), limit(seen.size())) << n << " nodes";
  }
}

TEST(PlacementStatistics, WithDomainsAllNodesOfOtherDomainsAreEquallyLikely) {
  const Labels labels = of_sizes({6, 6, 6, 6});
  std::vector<double> seen(18, 0);
  for (int seed = 0; seed < draws; ++seed) {
    const Placement placement = place(seed, 2, labels);
    for (const NodeId holder : placement.of(3).subspan(1)) ++seen.at(holder - 6);
  }
  EXPECT_LT(chi_square(seen), limit(seen.size()));
}

// Two random permutations agree in Poisson(1) places; the sets {node, its replica} that two nodes
// share (each keeps the other's) are as many as among random ones: n * 1/(n - 1) / 2.
TEST(PlacementStatistics, MutualPartnersAreAsRareAsByChance) {
  const std::uint32_t n = 64;
  double mutual = 0;
  for (int seed = 0; seed < draws; ++seed) {
    const Placement placement = place(seed, 1, no_domains(n));
    for (NodeId node = 0; node < n; ++node)
      mutual += placement.of(placement.of(node)[1])[1] == node;
  }
  EXPECT_NEAR(mutual / draws, 64.0 / 63.0, 0.15);
}

// With r = 2 a set of three nodes is fatal if it is some node and its replicas. Almost no two
// segments of 64 nodes share one, where the regular start has each set up to three times.
TEST(PlacementStatistics, FatalSetsDoNotRepeat) {
  std::size_t distinct = 0;
  for (int seed = 0; seed < 100; ++seed) {
    const Placement placement = place(seed, 2, no_domains(63));
    std::set<std::set<NodeId>> sets;
    for (NodeId node = 0; node < 63; ++node) {
      sets.emplace(placement.of(node).begin(), placement.of(node).end());
    }
    distinct += sets.size();
  }
  EXPECT_GT(distinct, 100 * 63 * 98 / 100);
}

double place_s(std::uint32_t nodes, std::uint32_t replicas) {
  const PlacementFacts facts{1, replicas, of_sizes(std::vector<std::size_t>(nodes / 16, 16))};
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();  // of the processor: a busy machine adds nothing
    EXPECT_TRUE(place_replicas(facts).ok());
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

// 16 times the nodes take 16 times as long, and not 256 times; caches make it somewhat more.
TEST(PlacementStatistics, TimeGrowsWithNodes) {
  const double few = place_s(4096, 2);
  const double many = place_s(65'536, 2);
  RecordProperty("seconds_4096", std::to_string(few));
  RecordProperty("seconds_65536", std::to_string(many));
  std::printf("r = 2: 4096 nodes in %.2g s, 65536 nodes in %.2g s\n", few, many);
  EXPECT_LT(many, 64 * few);
}

}  // namespace
}  // namespace backstay::protect
