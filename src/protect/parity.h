// Plans of a parity group: who reads which blocks and makes which, to encode or to rebuild
// (docs/protocol/parity.md). Pure: no I/O, no clock, any thread; the same on every agent.
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
  std::vector<Block> makes;  // each belongs to its member, or to who takes that one's place
};

// One a stripe: stripe s is the work of member s.
std::vector<StripeWork> plan_encode(const Stripes& stripes);

enum class Wanted { data, data_and_parity };

// One for each stripe that lost a block that is wanted and not empty; a living member works for it.
// Stripes that lost data come first. `lost`: members, none twice.
// Errors: lost (more than m; the message names them).
Result<std::vector<StripeWork>> plan_rebuild(const Stripes& stripes,
                                             std::span<const std::uint32_t> lost, Wanted wanted);

// Bytes over the network of each member if all of `work` is done: a worker's own blocks cost
// nothing. What is made for a lost member counts as received by that member.
struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};
std::vector<Traffic> traffic_of(const Stripes& stripes, std::span<const StripeWork> work);

}  // namespace backstay::protect
