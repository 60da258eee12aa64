#include "bench/harness/pattern.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace backstay::bench {

namespace {

// Sizes spread evenly over the orders of magnitude, then scaled to the bytes of the class.
void append(std::vector<std::uint64_t>& sizes, const PatternClass& kind, double writes,
            double bytes, std::mt19937_64& random) {
  const auto count = static_cast<std::size_t>(std::max(1.0, std::round(writes * kind.writes)));
  std::uniform_real_distribution<double> order(0.0, 3.0);
  std::vector<double> weights(count);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(order(random));
  for (const double weight : weights) {
    const double size = weight / sum * bytes * kind.bytes;
    sizes.push_back(std::clamp(static_cast<std::uint64_t>(size), kind.least, kind.most));
  }
}

}  // namespace

std::vector<std::uint64_t> make_pattern(std::uint64_t seed, int process, unsigned shrink) {
  std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(process));
  const double writes = std::uniform_real_distribution<double>(975, 1156)(random) / shrink;
  const double bytes = std::uniform_real_distribution<double>(23e6, 40e6)(random) / shrink;
  std::vector<std::uint64_t> sizes;
  append(sizes, small_writes, writes, bytes, random);
  append(sizes, medium_writes, writes, bytes, random);
  append(sizes, large_writes, writes, bytes, random);
  std::shuffle(sizes.begin(), sizes.end(), random);
  return sizes;
}

}  // namespace backstay::bench
