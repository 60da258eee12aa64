// Lists of failure domains for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/seed.h"

namespace backstay::protect::test {

using Labels = std::vector<std::string>;

// No node has a domain.
inline Labels no_domains(std::size_t nodes) { return Labels(nodes); }

// {3, 1}: three nodes of domain "0", then one of "1".
inline Labels of_sizes(const std::vector<std::size_t>& sizes) {
  Labels labels;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    labels.insert(labels.end(), sizes[i], std::to_string(i));
  }
  return labels;
}

// About `domains` domains of random size, in random order; some nodes have none.
inline Labels random_domains(std::size_t nodes, std::size_t domains,
                             backstay::test::Random& random) {
  Labels labels;
  while (labels.size() < nodes) {
    const std::uint64_t domain = random.between(0, domains);
    const std::uint64_t size = random.between(1, std::max<std::size_t>(1, 2 * nodes / domains));
    for (std::uint64_t i = 0; i < size && labels.size() < nodes; ++i) {
      labels.push_back(domain == domains ? std::string() : std::to_string(domain));
    }
  }
  std::shuffle(labels.begin(), labels.end(), random.engine());
  return labels;
}

}  // namespace backstay::protect::test
