// Plays so many seeds from one on, of each kind of run; prints the first one that is broken.
#include <cstdlib>
#include <iostream>

#include "carried_cut/carried.h"

int main(int argc, char** argv) {
  using namespace backstay::agent::test;  // NOLINT
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  const Limits kinds[] = {{.nodes = 5},
                          {.nodes = 7, .ranks_a_node = 2, .asks = 4, .faults = 6},
                          {.nodes = 3, .ranks_a_node = 1, .calls = 80, .asks = 4, .faults = 4},
                          {.nodes = 4, .ranks_a_node = 2, .faults = 3, .ranks_die = true}};
  std::uint64_t complete = 0, saved = 0, given_up = 0;
  std::set<std::string> reasons;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    for (const Limits& limits : kinds) {
      Outcome outcome = CarriedRun(seed, limits).play();
      complete += outcome.complete;
      saved += outcome.saved;
      given_up += outcome.given_up;
      reasons.merge(outcome.reasons);
      if (outcome.broken.empty()) continue;
      std::cout << "seed " << seed << ", " << limits.nodes << " nodes: " << outcome.broken << '\n';
      return 1;
    }
  }
  std::cout << saved << " cuts saved, " << complete << " versions complete, " << given_up
            << " given up\n";
  for (const std::string& reason : reasons) std::cout << "  " << reason << '\n';
  return 0;
}
