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

// Most calls find nothing new: one exchange, and that of due().
Orders Lockstep::next(const Wishes& mine) {
  constexpr std::int64_t runs = 1;
  constexpr std::int64_t has_wishes = 2;
  const bool wishes = mine.save || mine.stop || mine.cut.is_busy || mine.cut.agent_lost;
  const std::int64_t said = (wishes ? has_wishes : 0) | (mine.ended ? 0 : runs);
  const auto most = group_.maximum(said);
  Orders orders;
  if (!most.ok()) return orders;
  if (*most >= has_wishes) {
    orders.save = any(mine.save);
    orders.stop = any(mine.stop);
    orders.all_ended = !any(!mine.ended);
    orders.cut = agree(mine.cut);
  } else {
    orders.all_ended = *most == 0;
  }
  const bool due = session_.due();
  orders.save = orders.save || due;
  orders.stop = orders.stop || session_.stop_requested();
  return orders;
}

}  // namespace backstay::image
