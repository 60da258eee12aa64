// Randomness of tests: one seed a program, printed where a test fails, replayed by
// BACKSTAY_TEST_SEED=<number>.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace backstay::test {

inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    if (const char* text = std::getenv("BACKSTAY_TEST_SEED"))
      return std::strtoull(text, nullptr, 10);
    return static_cast<unsigned long long>(std::random_device{}());
  }();
  return value;
}

// For SCOPED_TRACE.
inline std::string replay() { return "replay with BACKSTAY_TEST_SEED=" + std::to_string(seed()); }

class Random {
 public:
  explicit Random(std::uint64_t from = seed()) : engine_(from) {}
  // Uniform in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace backstay::test
