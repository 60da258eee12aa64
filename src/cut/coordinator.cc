#include "cut/coordinator.h"

#include <algorithm>
#include <utility>

namespace backstay::cut {

namespace {

bool is_settled(const Report& all) {
  return std::all_of(all.clocks.begin(), all.clocks.end(),
                     [](const Clock& clock) { return clock.is_settled(); });
}

}  // namespace

void Coordinator::request() {
  if (phase_ != Phase::idle) return;
  ++cut_;
  phase_ = Phase::run_on;
  round_ = 1;
  targets_.clear();
  needs_.clear();
  order(Order::What::run_on);
}

void Coordinator::receive(const Report& all) {
  if (phase_ == Phase::idle || all.cut != cut_) return;
  if (all.ended > 0) return give_up("a rank has ended");
  if (all.ranks < ranks_) return;
  if (phase_ == Phase::run_on) {
    lead_on(all);
  } else if (phase_ == Phase::stopping && all.standing == ranks_) {
    if (!is_settled(all)) return give_up("ranks went on after they had stopped");
    if (all.sent != all.taken_in) return;
    phase_ = Phase::closing;
    order(Order::What::save, all.newest + 1);
  } else if (phase_ == Phase::closing && all.closed == ranks_) {
    phase_ = Phase::saving;
    order(Order::What::go_on);
  } else if (phase_ == Phase::saving && all.saved == ranks_) {
    end(true, "");
  }
}

// A round is led further only when all have answered it: what they said then holds until the next
// order, as those that have reached their targets begin no collective call.
void Coordinator::lead_on(const Report& all) {
  if (all.round < round_) return;
  if (has_news(all)) {
    next_round(all);
  } else if (all.reached == ranks_ && is_settled(all)) {
    phase_ = Phase::stopping;
    order(Order::What::stop);
  }
}

bool Coordinator::has_news(const Report& all) const {
  if (all.needs != needs_) return true;
  return std::any_of(all.clocks.begin(), all.clocks.end(), [this](const Clock& clock) {
    if (clock.least == clock.most) return false;
    const auto target = targets_.find(clock.communicator);
    return target == targets_.end() || target->second < clock.most;
  });
}

void Coordinator::next_round(const Report& all) {
  for (const Clock& clock : all.clocks) {
    if (clock.least < clock.most) targets_[clock.communicator] = clock.most;
  }
  needs_ = all.needs;
  ++round_;
  order(Order::What::run_on);
}

void Coordinator::order(Order::What what, VersionNumber version) {
  Order order{cut_, what, round_, {}, {}, version};
  if (what == Order::What::run_on) {
    for (const auto& [communicator, clock] : targets_)
      order.targets.push_back({communicator, clock});
    order.needs = needs_;
  }
  out_.emplace_back(std::move(order));
}

void Coordinator::give_up(const std::string& why) {
  if (phase_ == Phase::idle) return;
  order(Order::What::give_up);
  end(false, why);
}

void Coordinator::end(bool saved, const std::string& why) {
  phase_ = Phase::idle;
  out_.emplace_back(Ended{cut_, saved, why});
}

std::vector<CoordinatorOutput> Coordinator::take() { return std::exchange(out_, {}); }

}  // namespace backstay::cut
