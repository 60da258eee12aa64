// Random programs that cannot deadlock by themselves, played at random: up to 64 ranks, slow ranks,
// agents between ranks and coordinator. One seed gives one history.
#pragma once

#include <string>

#include "base/random.h"
#include "cut/world.h"

namespace backstay::cut {

struct Limits {
  std::uint32_t ranks = 64;
  std::uint32_t calls = 600;  // of all programs together
  bool faults = true;         // in one history of four
};

struct Outcome {
  std::string broken;
  std::uint32_t ranks = 0;
  std::uint32_t saved = 0, given_up = 0;
  std::uint32_t rounds = 0;       // the most of a cut
  std::uint64_t collectives = 0;  // the most that ranks began while a cut was agreed upon
  bool faulty = false;
};

Outcome play(std::uint64_t seed, const Limits& limits);

// A random program of so many ranks, with what each of them receives where nothing disturbs it.
Scene random_scene(SplitMix64& random, std::uint32_t ranks, std::uint32_t calls);

}  // namespace backstay::cut
