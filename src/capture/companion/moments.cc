#include "capture/companion/moments.h"

namespace backstay::image {

// A group that is lost has no wishes; its owner sees that by itself.
bool Lockstep::any(bool mine) const {
  const auto most = group_.maximum(mine ? 1 : 0);
  return most.ok() && *most != 0;
}

CutOrders Lockstep::agree(const CutWishes& mine) const {
  CutOrders all;
  all.is_busy = any(mine.is_busy);
  if (!all.is_busy && !any(mine.agent_lost)) return all;
  all.is_ready = !any(!mine.is_ready);
  all.gave_up = any(mine.gave_up);
  all.agent_lost = any(mine.agent_lost);
  return all;
}

// Most calls find nothing new, also while a cut is on its way: one exchange, and that of due(). On
// a busy machine each exchange waits until all companions have had the processor.
Orders Lockstep::next(const Wishes& mine) {
  constexpr std::int64_t runs = 1;
  constexpr std::int64_t in_cut = 2;
  constexpr std::int64_t has_wishes = 3;
  const CutWishes& cut = mine.cut;
  const bool of_cut = cut.is_ready || cut.gave_up || cut.agent_lost || (cut.is_busy && mine.ended);
  const std::int64_t said = mine.save || mine.stop || of_cut ? has_wishes
                            : cut.is_busy                    ? in_cut
                                                             : (mine.ended ? 0 : runs);
  const auto most = group_.maximum(said);
  Orders orders;
  if (!most.ok()) return orders;
  if (*most == has_wishes) {
    orders.save = any(mine.save);
    orders.stop = any(mine.stop);
    orders.all_ended = !any(!mine.ended);
    orders.cut = agree(mine.cut);
  } else {
    orders.cut.is_busy = *most == in_cut;
    orders.all_ended = *most == 0;
  }
  const bool due = session_.due();
  orders.save = orders.save || due;
  orders.stop = orders.stop || session_.stop_requested();
  return orders;
}

}  // namespace backstay::image
