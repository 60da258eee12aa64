// One seed a test program: printed at the start, replayed by BACKSTAY_SEED=<number>. It is fixed,
// so that every run of the normal tests is the same; `make soak` takes more points from other
// seeds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace backstay::crash {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline std::uint64_t base_seed() {
  static const std::uint64_t seed = [] {
    const std::uint64_t value = from_environment("BACKSTAY_SEED", 20261120);
    std::printf("seed %llu (replay: BACKSTAY_SEED=%llu)\n", static_cast<unsigned long long>(value),
                static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : engine_() % end; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace backstay::crash
