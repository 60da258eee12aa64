// Whose an object is and what it holds: the key by which a manifest lists it
// (docs/format/manifest.md).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace backstay::format {

// Ranks stand first, so that their objects are found alike whatever else a node holds.
enum class OwnerKind : std::uint16_t { rank = 0, writer = 1 };
enum class ObjectKind : std::uint16_t { regions = 1, files = 2, image = 3, calls = 4 };

// In words: "regions", "files", "process image", "recorded calls".
std::string_view kind_name(ObjectKind kind);

struct ObjectId {
  OwnerKind owner = OwnerKind::rank;
  ObjectKind kind = ObjectKind::regions;
  std::uint32_t number = 0;  // a rank, or a writer's number on its node

  constexpr ObjectId() = default;
  // A rank's regions: what a rank alone means in a manifest.
  constexpr ObjectId(Rank rank) : number(rank) {}  // NOLINT(google-explicit-constructor)
  constexpr ObjectId(OwnerKind of, std::uint32_t which, ObjectKind what)
      : owner(of), kind(what), number(which) {}

  // Owner kind, number, kind, from its most significant bits down: the order of a manifest, in one
  // comparison.
  constexpr std::uint64_t key() const {
    return std::uint64_t{static_cast<std::uint16_t>(owner)} << 48 | std::uint64_t{number} << 16 |
           static_cast<std::uint16_t>(kind);
  }
  friend constexpr bool operator==(const ObjectId& a, const ObjectId& b) {
    return a.key() == b.key();
  }
  friend constexpr auto operator<=>(const ObjectId& a, const ObjectId& b) {
    return a.key() <=> b.key();
  }
};

std::string owner_name(const ObjectId& id);   // "rank 3", "writer 7"
std::string object_name(const ObjectId& id);  // "rank 3" for its regions, else "files of writer 7"

}  // namespace backstay::format
