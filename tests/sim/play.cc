// sim_play FIRST COUNT: plays the histories of COUNT seeds; ends with 1 at the first that breaks a
// rule. For mutants.py.
#include <cstdio>
#include <cstdlib>

#include "sim/chaos.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t end = first + std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const auto outcome = backstay::sim::play(backstay::sim::plan_of(seed), seed);
    if (outcome.violations.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                outcome.violations.front().c_str());
    return 1;
  }
  return 0;
}
