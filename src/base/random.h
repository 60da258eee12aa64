// The one random generator of what several programs must draw alike (placement of replicas):
// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). Any
// language computes it in five lines, which std::uniform_int_distribution does not allow. Not for
// secrets.
#pragma once

#include <cstdint>

namespace backstay {

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Uniform in 0 .. end-1, one draw: floor(next() * end / 2^64). No value is more frequent than
  // another by more than end / 2^64 of it. Precondition: end > 0.
  std::uint32_t below(std::uint32_t end) {
    const std::uint64_t draw = next();
    const std::uint64_t low = (draw & 0xffffffff) * end >> 32;
    return static_cast<std::uint32_t>(((draw >> 32) * end + low) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace backstay
