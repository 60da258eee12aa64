// The buffers that jobs have in the pool, by what is in them: for tools and metrics.
#pragma once

#include <cstdint>

#include "agent/version/job_state.h"

namespace backstay::agent {

struct BuffersUsed {
  std::uint32_t cached = 0;   // of versions that are on the disk
  std::uint32_t writing = 0;  // handed to the disk
  std::uint32_t filled = 0;   // neither

  void count(const JobState& state) {
    for (const auto& [number, version] : state.memory) {
      for (const HeldChunk& chunk : version.chunks) {
        if (chunk.released) continue;
        ++(chunk.in_store ? writing : state.is_safe(version) ? cached : filled);
      }
    }
  }
};

}  // namespace backstay::agent
