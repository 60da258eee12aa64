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

// A packet as it comes, and with a good header: whatever it decodes to must be exactly what it
// says.
template <typename Decode>
int check_packet(const std::uint8_t* data, std::size_t size, Decode decode,
                 std::uint16_t protocol) {
  const auto check = [&](const Buffer& packet) {
    const auto message = decode(packet);
    if (!message.ok()) return;
    const auto again = encode(*message);
    FUZZ_PROMISE(again.ok() && *again == packet);
  };
  Buffer packet = input(data, size);
  check(packet);
  if (size < 8) return 0;
  test::overwrite(packet, 2, protocol);
  test::overwrite(packet, 4, static_cast<std::uint32_t>(size - 8));
  check(packet);
  return 0;
}

}  // namespace backstay::fuzz
