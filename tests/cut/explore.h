// Every interleaving of a few ranks, once each state.
#pragma once

#include <string>

#include "cut/world.h"

namespace backstay::cut {

struct Found {
  std::uint64_t states = 0;
  std::uint64_t ends = 0;      // histories' ends, each state once
  std::uint64_t with_cut = 0;  // of them, those in which a cut was saved
  std::uint64_t without = 0;   // those in which none was
  bool complete = true;        // false: states_max was reached
  std::string broken;          // the first broken promise, with the actions that lead there
};
Found explore(const Scene& scene, std::uint64_t states_max = UINT64_MAX);

// With Scene::expected.
Scene with_expected(Scene scene);

}  // namespace backstay::cut
