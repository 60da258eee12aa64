// What the fuzzers share. A broken promise ends the process, as libFuzzer expects.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/bytes.h"
#include "support/damage.h"

#define FUZZ_PROMISE(condition)                                                            \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "%s:%d: promise broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (0)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace backstay::fuzz {

inline Buffer input(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  return {first, first + size};
}

}  // namespace backstay::fuzz
