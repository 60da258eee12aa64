// One random history of a run: faults of every kind while versions, barriers and facts go on; then
// the faults stop and all must come right; then all agents die, some with their disks, and a new
// run on what is left must know what was announced.
#pragma once

#include <string>
#include <vector>

#include "sim/checker.h"

namespace backstay::sim {

struct Plan {
  std::uint32_t nodes = 16;
  std::uint32_t arity = 2;
  std::uint32_t chaos_ticks = 150;
  std::uint32_t calm_ticks_max = 400;
  Weather weather;
  std::uint32_t kills_percent = 10;      // a kill, each tick
  std::uint32_t disks_percent = 0;       // of the kills that destroy the disk
  std::uint32_t cuts_percent = 2;        // a partition, each tick
  std::uint32_t stops_percent = 2;       // a stopped agent, each tick
  bool says_recorded_too_early = false;  // broken owners (world.h)
  bool says_held_too_early = false;
};
// Small runs with all faults; every seed another one.
Plan plan_of(std::uint64_t seed);

struct Outcome {
  std::vector<std::string> violations;
  std::uint32_t ticks_to_heal = 0;
  std::uint64_t announcements = 0;
  std::uint64_t barrier_rounds = 0;
  std::uint64_t messages = 0;
  std::size_t connections_max = 0;
};
Outcome play(const Plan& plan, std::uint64_t seed);

}  // namespace backstay::sim
