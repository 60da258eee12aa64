#include "capture/companion/agreed_cut.h"

#include <fmt/format.h>

#include <utility>

#include "base/tell.h"

namespace backstay::image {

Orders AgreedCut::next(const Wishes& mine) {
  pump();
  Wishes said = mine;
  said.cut = {false, wanted_ || member_.is_busy(), ready_, over_.has_value(), lost_};
  const Orders orders = lockstep_.next(said);
  if (orders.cut.agent_lost) (void)link_.find_agent();
  return order_cut(orders);
}

// A save that was asked for comes when all ranks are ready for it. Where the cut was given up it
// comes as well, and fails: the rank that knows why says so, and the others that it is not they.
Orders AgreedCut::order_cut(Orders orders) {
  why_not_.reset();
  const bool asked = orders.save || orders.stop;
  if (asked && !wanted_ && !lockstep_.any(uses_mpi())) return orders;
  stop_wanted_ = stop_wanted_ || orders.stop;
  if (asked && company_.is_first() && !wanted_) (void)link_.request();
  wanted_ = wanted_ || asked;
  const bool gave_up = orders.cut.gave_up && !orders.cut.is_ready;
  if (gave_up) {
    why_not_ = over_ ? *over_ : Error(Code::rank_lost, "another rank cannot be saved");
  }
  const bool now = wanted_ && (orders.cut.is_ready || gave_up);
  orders.stop = now && std::exchange(stop_wanted_, stop_wanted_ && !now);
  orders.save = now && !orders.stop;
  if (now) wanted_ = false;
  if (now) over_.reset();
  return orders;
}

// Also where it is in MPI_Init: it could not be stopped outside of MPI.
bool AgreedCut::uses_mpi() const {
  return __atomic_load_n(&channel_.ranks, __ATOMIC_ACQUIRE) != 0 || !lower::is_outside(channel_);
}

// The program goes on when all ranks are closed. saved() says nothing new to the cut then. Nothing
// is heard here: the version of the save must not change before it is begun.
void AgreedCut::fixed() {
  if (!ready_) return;
  member_.saved();
  hand_on();
}

void AgreedCut::saved(const Status& status) {
  if (!std::exchange(ready_, false)) return;
  if (status.ok()) {
    told_.saved();
    member_.saved();
  } else {
    (void)link_.refuse(cut_, status.error());
  }
  pump();
}

void AgreedCut::pump() {
  for (const client::CutLink::News& news : link_.take()) hear(news);
  member_.look();
  hand_on();
}

void AgreedCut::hear(const client::CutLink::News& news) {
  if (const auto* order = std::get_if<cut::Order>(&news)) {
    cut_ = order->cut;
    member_.receive(*order);
  } else if (const auto* over = std::get_if<client::CutLink::Over>(&news)) {
    if (!over->how.ok()) hear_why(over->how.error());
  } else {
    lost_ = std::holds_alternative<client::CutLink::AgentLost>(news);
    lost_ ? member_.lose_coordinator() : member_.find_coordinator();
  }
}

void AgreedCut::hear_why(const Error& why) {
  if (why.code() != Code::again) {
    over_ = why;
  } else if (told_.hear(why.message(), std::chrono::steady_clock::now())) {
    tell_user(
        fmt::format("the program cannot be saved now, because {}; it runs on, and is tried "
                    "again",
                    why.message()));
  }
}

void AgreedCut::leave() {
  member_.lose_coordinator();
  (void)member_.take();
}

void AgreedCut::hand_on() {
  for (const CutMember::Output& one : member_.take()) {
    if (const auto* report = std::get_if<cut::Report>(&one)) {
      (void)link_.report(*report);
    } else if (const auto* refused = std::get_if<CutMember::Refused>(&one)) {
      (void)link_.refuse(refused->cut, Error(Code::again, refused->why));
    } else {
      ready_ = std::holds_alternative<CutMember::TakeImage>(one);
    }
  }
}

}  // namespace backstay::image
