// An older version that chunks of another one lie in (docs/format/manifest.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace backstay::format {

inline constexpr std::size_t need_bytes = 16;
inline constexpr std::size_t needs_max = 20;  // what a commit record has room for

struct Need {
  VersionNumber version = 0;
  RunId run = 0;
  friend bool operator==(const Need&, const Need&) = default;
};

// Of a list that version `of` has: sorted, each version once and older than `of`, not too many.
// Empty: nothing is wrong.
std::string_view wrong_with_needs(std::span<const Need> needs, VersionNumber of);

// Both lists in one, sorted, each version once: what a version of several manifests needs.
std::vector<Need> both_needs(std::span<const Need> a, std::span<const Need> b);

}  // namespace backstay::format
