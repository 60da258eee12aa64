#include "protect/parity.h"

#include <utility>

namespace backstay::protect {
std::vector<StripeWork> plan_encode(const Stripes& stripes) {
  std::vector<StripeWork> plan;
  if (stripes.block_bytes() == 0) return plan;
  for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
    StripeWork work{stripe, stripe, {}, {}};
    for (std::uint32_t index = 0; index < stripes.count(); ++index) {
      auto& blocks = stripes.is_parity(index) ? work.makes : work.reads;
      blocks.push_back(stripes.block(stripe, index));
    }
    plan.push_back(std::move(work));
  }
  return plan;
}

std::vector<Traffic> traffic_of(const Stripes& stripes, std::span<const StripeWork> work) {
  std::vector<Traffic> traffic(stripes.count());
  const auto move = [&](std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    if (from == to) return;
    traffic[from].sent += bytes;
    traffic[to].received += bytes;
  };
  for (const StripeWork& one : work) {
    for (const Block& block : one.reads) move(block.member, one.worker, block.bytes);
    for (const Block& block : one.makes) move(one.worker, block.member, block.bytes);
  }
  return traffic;
}

}  // namespace backstay::protect
