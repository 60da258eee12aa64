#include "cut/rank.h"

#include <algorithm>
#include <utility>

namespace backstay::cut {

void Rank::open(CommunicatorNumber communicator) {
  clocks_.try_emplace(communicator, 0);
  tell();
}

bool Rank::may_begin(CommunicatorNumber communicator, std::optional<CommunicatorNumber> makes) {
  const auto found = clocks_.find(communicator);
  if (found == clocks_.end()) return true;  // not known: MPI itself will say so
  const bool shut = phase_ != Phase::none && !(phase_ == Phase::run_on && may_run_on());
  if (shut) return false;
  ++found->second;
  if (makes) clocks_.try_emplace(*makes, 0);
  tell();
  return true;
}

bool Rank::permit(CommunicatorNumber communicator, Permit which) {
  if (which == Permit::behind && !is_behind(communicator)) return false;
  const bool was = std::exchange(in_collective_, true);  // before a report says the clock
  if (may_begin(communicator)) return true;
  in_collective_ = was;
  return false;
}

void Rank::closed(CommunicatorNumber communicator) {
  clocks_.erase(communicator);
  tell();
}

void Rank::sent(RankNumber to) {
  if (to >= peers_.size()) return;
  ++peers_[to].sent;
  tell();
}

void Rank::took_in(RankNumber from) {
  if (from >= peers_.size()) return;
  ++peers_[from].taken_in;
  tell();
}

void Rank::took(RankNumber from) {
  if (from >= peers_.size()) return;
  ++peers_[from].taken;
  tell();
}

void Rank::waits(std::vector<Awaited> awaited) {
  awaited_ = std::move(awaited);
  tell();
}

void Rank::woke() {
  awaited_.clear();
  tell();
}

void Rank::observe(Observed now) {
  if (phase_ != Phase::none) {
    for (auto& [communicator, begun] : now.begun) {
      const auto known = clocks_.find(communicator);
      if (known == clocks_.end()) continue;
      // What has counted as begun will begin: the cut does not come in front of it.
      if (begun < known->second) now.in_collective = true;
      begun = known->second;
    }
  }
  clocks_ = std::move(now.begun);
  if (now.peers.size() == peers_.size()) peers_ = std::move(now.peers);
  awaited_ = std::move(now.awaited);
  in_collective_ = now.in_collective;
  tell();
}

void Rank::stands() {
  if (phase_ != Phase::stopping) return;
  phase_ = Phase::standing;
  tell();
}

void Rank::saved() {
  if (phase_ != Phase::saving) return;
  has_image_ = true;
  leave_if_saved();
}

// A rank that went on sooner could send a message that another one still takes into its image.
void Rank::leave_if_saved() {
  if (!has_image_ || !all_closed_) return;
  tell();
  leave_cut();
}

void Rank::ends() {
  ended_ = true;
  tell();
}

void Rank::lose_coordinator() {
  alone_ = true;
  if (phase_ != Phase::none) leave_cut();
}

void Rank::find_coordinator() { alone_ = false; }

void Rank::leave_cut() {
  phase_ = Phase::none;
  targets_.clear();
  needs_.clear();
  round_ = 0;
  has_image_ = all_closed_ = false;
  told_.reset();
  out_.emplace_back(GoOn{});
}

bool Rank::is_behind(CommunicatorNumber communicator) const {
  const auto target = targets_.find(communicator);
  const auto own = clocks_.find(communicator);
  return target != targets_.end() && own != clocks_.end() && own->second < target->second;
}

bool Rank::is_behind() const {
  return std::any_of(targets_.begin(), targets_.end(),
                     [this](const auto& target) { return is_behind(target.first); });
}

bool Rank::is_needed_by(const Need& need) const {
  if (need.waiting == self_ || need.waiting >= peers_.size()) return false;
  if (need.peer == any_rank) return true;
  if (need.peer != self_) return false;
  const Peer& waiting = peers_[need.waiting];
  // More were sent than have arrived: what it waits for may be under way.
  if (need.what == Need::What::message) return waiting.sent <= need.count;
  return waiting.taken < need.count;
}

bool Rank::is_needed() const {
  return std::any_of(needs_.begin(), needs_.end(),
                     [this](const Need& need) { return is_needed_by(need); });
}

void Rank::run_on(const Order& order) {
  if (phase_ == Phase::none && order.cut > cut_) {
    cut_ = order.cut;
    phase_ = Phase::run_on;
  }
  if (phase_ != Phase::run_on || order.cut != cut_ || order.round <= round_) return;
  round_ = order.round;
  for (const Order::Target& target : order.targets) {
    std::uint64_t& clock = targets_[target.communicator];
    clock = std::max(clock, target.clock);
  }
  needs_ = order.needs;
  if (may_run_on()) out_.emplace_back(Wake{});
  tell();
}

void Rank::receive(const Order& order) {
  if (alone_) return;
  if (order.what == Order::What::run_on) return run_on(order);
  if (order.cut != cut_ || phase_ == Phase::none) return;
  if (order.what == Order::What::stop && phase_ == Phase::run_on) {
    phase_ = Phase::stopping;
    out_.emplace_back(Stop{});
  } else if (order.what == Order::What::save && phase_ == Phase::standing) {
    phase_ = Phase::saving;
    out_.emplace_back(Save{});
    tell();
  } else if (order.what == Order::What::go_on && phase_ == Phase::saving) {
    all_closed_ = true;
    leave_if_saved();
  } else if (order.what == Order::What::give_up) {
    leave_cut();
  }
}

std::uint64_t Rank::begun(CommunicatorNumber communicator) const {
  const auto found = clocks_.find(communicator);
  return found == clocks_.end() ? 0 : found->second;
}

Report Rank::report() const {
  Report report;
  report.cut = cut_;
  report.round = round_;
  report.ranks = 1;
  report.ended = ended_ ? 1 : 0;
  const bool reached = phase_ != Phase::run_on || (!may_run_on() && !in_collective_);
  report.reached = reached ? 1 : 0;
  report.standing = phase_ >= Phase::standing ? 1 : 0;
  report.closed = phase_ == Phase::saving ? 1 : 0;
  report.saved = has_image_ && all_closed_ ? 1 : 0;
  if (report.standing != 0) {
    for (const Peer& peer : peers_) {
      report.sent += peer.sent;
      report.taken_in += peer.taken_in;
    }
  }
  for (const auto& [communicator, begun] : clocks_) {
    report.clocks.push_back({communicator, begun, begun});
  }
  if (reached) return report;
  for (const Awaited& one : awaited_) {
    Need need{self_, one.peer, one.what, 0};
    if (one.peer < peers_.size()) {
      const Peer& peer = peers_[one.peer];
      need.count = one.what == Need::What::message ? peer.taken_in : peer.sent;
    }
    report.needs.push_back(need);
  }
  std::sort(report.needs.begin(), report.needs.end());
  return report;
}

void Rank::tell() {
  if (phase_ == Phase::none) return;
  Report now = report();
  if (told_ == now) return;
  told_ = now;
  out_.emplace_back(std::move(now));
}

std::vector<RankOutput> Rank::take() { return std::exchange(out_, {}); }

}  // namespace backstay::cut
