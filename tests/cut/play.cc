// cut_play FIRST COUNT: every interleaving of the small programs, then COUNT random histories from
// seed FIRST on; ends with 1 at the first broken promise. For mutants.py.
#include <cstdio>
#include <cstdlib>

#include "cut/chaos.h"
#include "cut/explore.h"
#include "cut/programs.h"

int main(int argc, char** argv) {
  using namespace backstay::cut;
  if (argc != 3) return 2;
  for (const Named& named : small_programs()) {
    const Found found = explore(with_expected(named.scene), 300000);
    const bool missed = named.always_saves && found.without > 0;
    if (found.broken.empty() && !missed) continue;
    std::printf(
        "%s: %s\n", named.name.c_str(),
        missed ? "no cut was saved" : found.broken.substr(0, found.broken.find('\n')).c_str());
    return 1;
  }
  const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t end = first + std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    Limits limits;
    if (seed % 10 != 0) limits = {6, 60, true};
    const Outcome outcome = play(seed, limits);
    if (outcome.broken.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), outcome.broken.c_str());
    return 1;
  }
  return 0;
}
