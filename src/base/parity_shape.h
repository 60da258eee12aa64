// The shape of parity as `protect.parity` says it: read here alone, with the only limits that do
// not depend on the number of nodes. What groups and stripes of that shape are:
// docs/protocol/parity.md. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace backstay {

// (k, m): of each stripe k blocks are data and m parity; any m of them may be lost.
struct ParityShape {
  std::uint32_t data = 0;
  std::uint32_t parity = 0;
  std::uint32_t members() const { return data + parity; }
  bool operator==(const ParityShape&) const = default;
};

inline constexpr std::uint32_t parity_max = 4;
inline constexpr std::uint32_t shape_members_max = 128;

// Errors: invalid (out of these limits, or one of both is 0).
Status check_shape(ParityShape shape);

// "k,m", as in protect.parity. Errors: config (says what is wrong with it).
Result<ParityShape> parse_parity(const std::string& text);

}  // namespace backstay
