// A placement for arguments that are right.
#pragma once

#include "protect/made_domains.h"
#include "protect/placement.h"

namespace backstay::protect::test {

inline Placement place(std::uint64_t seed, std::uint32_t replicas, const Labels& domains) {
  return place_replicas({seed, replicas, domains}).value();
}

}  // namespace backstay::protect::test
