// A tier in this process's memory: for tests, and the model with which the others are compared.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "tier/tier.h"

namespace backstay::tier {

struct MemoryTierOptions {
  std::uint64_t capacity_bytes = std::numeric_limits<std::uint64_t>::max();  // full: no_space
  unsigned depth = 8;
};

// Nothing survives the process. Requests are carried out when they are submitted.
std::unique_ptr<Tier> make_memory_tier(MemoryTierOptions options = {});

}  // namespace backstay::tier
