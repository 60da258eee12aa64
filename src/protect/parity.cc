#include "protect/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace backstay::protect {
namespace {

// Chooses workers and sources so that both are spread over the living members.
class Balance {
 public:
  Balance(const Stripes& stripes, std::vector<bool> is_lost)
      : stripes_(stripes),
        is_lost_(std::move(is_lost)),
        works_(stripes.count(), 0),
        sent_(stripes.count(), 0) {}

  void assign(StripeWork& work) {
    work.worker = worker(work.stripe);
    work.reads = sources(work.stripe, work.worker);
    for (const Block& block : work.makes) sent_[work.worker] += block.bytes;
  }

 private:
  // The living member with the fewest stripes so far, of those the one that sends least, of those
  // the next on the ring.
  std::uint32_t worker(std::uint32_t stripe) {
    const auto load = [&](std::uint32_t member) {
      return std::pair(works_[member], sent_[member]);
    };
    std::uint32_t best = stripes_.count();
    for (std::uint32_t index = 0; index < stripes_.count(); ++index) {
      const std::uint32_t member = (stripe + index) % stripes_.count();
      if (is_lost_[member]) continue;
      if (best == stripes_.count() || load(member) < load(best)) best = member;
    }
    ++works_[best];
    return best;
  }

  // k living blocks: zeros, the worker's own, and those of the members that send least.
  std::vector<Block> sources(std::uint32_t stripe, std::uint32_t worker) {
    std::vector<Block> living;
    for (std::uint32_t index = 0; index < stripes_.count(); ++index) {
      const Block block = stripes_.block(stripe, index);
      if (!is_lost_[block.member]) living.push_back(block);
    }
    std::ranges::stable_sort(living, {}, [&](const Block& block) {
      const int kind = block.bytes == 0 ? 0 : block.member == worker ? 1 : 2;
      return std::tuple(kind, kind == 2 ? sent_[block.member] : 0);
    });
    living.resize(stripes_.shape().data);
    for (const Block& block : living) {
      if (block.member != worker) sent_[block.member] += block.bytes;
    }
    return living;
  }

  const Stripes& stripes_;
  std::vector<bool> is_lost_;
  std::vector<std::uint32_t> works_;
  std::vector<std::uint64_t> sent_;
};

std::vector<Block> lost_blocks(const Stripes& stripes, std::uint32_t stripe,
                               std::span<const std::uint32_t> lost, Wanted wanted) {
  std::vector<Block> blocks;
  for (const std::uint32_t member : lost) {
    const Block block = stripes.block(stripe, stripes.index_of(stripe, member));
    if (block.bytes == 0) continue;
    if (wanted == Wanted::data_and_parity || !stripes.is_parity(block.index))
      blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

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

Result<std::vector<StripeWork>> plan_rebuild(const Stripes& stripes,
                                             std::span<const std::uint32_t> lost, Wanted wanted) {
  const ParityShape shape = stripes.shape();
  if (lost.size() > shape.parity) {
    return Error(Code::lost, fmt::format("{} of {} members of a parity group are lost ({}); parity "
                                         "({}, {}) makes up for {}",
                                         lost.size(), stripes.count(), fmt::join(lost, ", "),
                                         shape.data, shape.parity, shape.parity));
  }
  std::vector<bool> is_lost(stripes.count(), false);
  for (const std::uint32_t member : lost) is_lost[member] = true;
  std::vector<StripeWork> plan;
  for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
    std::vector<Block> makes = lost_blocks(stripes, stripe, lost, wanted);
    if (!makes.empty()) plan.push_back({stripe, 0, {}, std::move(makes)});
  }
  std::stable_partition(plan.begin(), plan.end(), [&](const StripeWork& work) {
    return std::ranges::any_of(work.makes,
                               [&](const Block& block) { return !stripes.is_parity(block.index); });
  });
  Balance balance(stripes, std::move(is_lost));
  for (StripeWork& work : plan) balance.assign(work);
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
