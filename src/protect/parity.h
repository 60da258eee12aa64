// The plan of a parity group: who reads which blocks and makes which parity (docs/protocol/parity.md, "Encoding"). Pure: no I/O, no clock, any thread; the same on every agent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "protect/stripes.h"

namespace backstay::protect {

// What one member does for one stripe: makes some blocks out of k others, with the Combination of
// these indexes.
struct StripeWork {
  std::uint32_t stripe = 0;
  std::uint32_t worker = 0;  // the member that reads, combines and hands out
  std::vector<Block> reads;  // k, in the order in which they are to be fetched; of 0 bytes: zeros
  std::vector<Block> makes;  // each belongs to its member
};

// One a stripe: stripe s is the work of member s.
std::vector<StripeWork> plan_encode(const Stripes& stripes);

// Bytes over the network of each member if all of `work` is done: a worker's own blocks cost
// nothing.
struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};
std::vector<Traffic> traffic_of(const Stripes& stripes, std::span<const StripeWork> work);

}  // namespace backstay::protect
