#include "agent/cut/cut_relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace backstay::agent {

using cut::Order;
using cut::Report;

CutRelay::CutRelay(CutFacts facts) : facts_(std::move(facts)) {
  if (facts_.node == 0) lead_.emplace(facts_.ranks, facts_.incarnation);
}

bool CutRelay::is_child(NodeId node) const {
  return std::ranges::find(links_.children, node) != links_.children.end();
}

void CutRelay::see(const tree::Links& links, std::uint32_t present, VersionNumber newest,
                   std::uint64_t now_ns) {
  now_ns_ = now_ns;
  present_ = present;
  newest_ = newest;
  if (links.changes == links_.changes) return;
  links_ = links;
  ask_sent_ = false;
  child_parts_.clear();
  order_parts_ = {};
  fail(Code::again, fmt::format("the agents around that of node {} ({}) have changed", facts_.node,
                                facts_.host));
}

void CutRelay::joined(Rank rank) {
  ranks_.insert(rank);
  gone_.erase(rank);
  parts_.erase(rank);
}

void CutRelay::left(Rank rank, bool goodbye) {
  if (ranks_.erase(rank) == 0) return;
  // A rank that says goodbye may connect again: another agent of its run was lost.
  const Error why(
      goodbye ? Code::again : Code::rank_lost,
      fmt::format("rank {} ({}) has {}", rank, facts_.host, goodbye ? "left its agent" : "died"));
  gone_.insert_or_assign(rank, why);
  asked_.erase(rank);
  serving_.erase(rank);
  fail(why.code(), why.message());
}

// --- orders -------------------------------------------------------------------------------------

void CutRelay::carry_out(const Order& order) {
  const bool begins = order.cut > cut_ && order.what == Order::What::run_on;
  if (begins ? !begin(order) : !is_of_now(order.cut)) return;
  order_ = order;
  told_.reset();
  changed_ = true;
  if (order.what == Order::What::save) {
    serving_.merge(asked_);
    out_.emplace_back(HoldVersion{order.version});
  }
  if (order.what == Order::What::go_on) out_.emplace_back(LetVersionGo{});
  hand_on(order);
}

bool CutRelay::begin(const Order& order) {
  if (active_) end({cut_, Code::again, "another cut has begun"});
  cut_ = order.cut;
  active_ = true;
  began_ns_ = now_ns_;
  order_ = {};
  order_.what = Order::What::give_up;  // none was handed on yet
  own_ = below_ = {};
  if (ranks_.size() == facts_.local_ranks) return true;
  if (!gone_.empty()) {
    fail(gone_.begin()->second.code(), gone_.begin()->second.message());
  } else {
    fail(Code::again, fmt::format("{} of {} ranks of node {} ({}) are connected to their agent",
                                  ranks_.size(), facts_.local_ranks, facts_.node, facts_.host));
  }
  return false;
}

void CutRelay::hand_on(const Order& order) {
  const auto messages = cut::as_messages(order);
  if (!messages.ok()) return fail(Code::too_large, messages.error().message());
  for (const wire::CutOrder& message : *messages) {
    tell_all(message);
    for (const NodeId child : links_.children) out_.emplace_back(TellAgent{child, message});
  }
}

void CutRelay::tell_all(const wire::Message& message) {
  for (const Rank rank : ranks_) out_.emplace_back(TellRank{rank, message});
}

// --- reports ------------------------------------------------------------------------------------

void CutRelay::report_on() {
  if (!active_ || !std::exchange(changed_, false)) return;
  Report all = own_.joined();
  if (own_.count() == 0) {
    all = below_.joined();
  } else if (below_.count() > 0) {
    cut::join(all, below_.joined());
  }
  all.newest = std::max(all.newest, newest_);
  if (all.cut != cut_ || !is_worth_telling(all)) return;
  if (lead_) return lead_->receive(all, now_ns_);
  const Report now = digest(all);
  if (told_ == now || !links_.parent) return;
  told_ = now;
  const auto messages = cut::as_messages(all);
  if (!messages.ok()) return fail(Code::too_large, messages.error().message());
  for (const wire::CutReport& message : *messages) {
    out_.emplace_back(TellAgent{*links_.parent, message});
  }
}

bool CutRelay::is_worth_telling(const Report& all) const {
  if (own_.count() < facts_.local_ranks || below_.count() < links_.children.size()) return false;
  switch (order_.what) {
    case Order::What::run_on: return all.round >= order_.round;
    case Order::What::stop: return all.standing == all.ranks;
    case Order::What::save: return all.closed == all.ranks;
    case Order::What::go_on: return all.saved == all.ranks;
    case Order::What::give_up: return false;
  }
  return false;
}

// While ranks are on their way to the targets, the coordinator acts on needs, and on clocks that
// are beyond the targets.
Report CutRelay::digest(const Report& all) const {
  Report some = all;
  if (order_.what != Order::What::run_on || all.reached == all.ranks) return some;
  some.reached = 0;
  std::map<cut::CommunicatorNumber, std::uint64_t> targets;
  for (const Order::Target& target : order_.targets) targets[target.communicator] = target.clock;
  std::erase_if(some.clocks, [&targets](const cut::Clock& clock) {
    const auto target = targets.find(clock.communicator);
    return target != targets.end() && clock.most <= target->second;
  });
  for (cut::Clock& clock : some.clocks) clock.least = 0;
  return some;
}

// --- who is late --------------------------------------------------------------------------------

bool CutRelay::is_late(const Report* report) const {
  if (report == nullptr) return true;
  switch (order_.what) {
    case Order::What::run_on:
      return report->round < order_.round || report->reached < report->ranks;
    case Order::What::stop: return report->standing < report->ranks;
    case Order::What::save: return report->closed < report->ranks;
    default: return report->saved < report->ranks;
  }
}

std::string CutRelay::say_late(Rank rank, std::uint32_t seconds) const {
  const Report* report = own_.of(rank);
  const char* what = "has not called MPI";
  if (report == nullptr || report->round < order_.round) {
    what = "has not answered";
  } else if (order_.what == Order::What::run_on) {
    what = "has not come to a call that other ranks are in";
  } else if (order_.what != Order::What::stop) {
    what = "has not been saved";
  }
  return fmt::format("rank {} ({}) {} for {} s", rank, facts_.host, what, seconds);
}

// Other ranks are in a call that it has not begun.
bool CutRelay::is_behind(const Report* report) const {
  if (report == nullptr) return true;
  return std::ranges::any_of(report->clocks, [this](const cut::Clock& clock) {
    return std::ranges::any_of(order_.targets, [&clock](const Order::Target& target) {
      return target.communicator == clock.communicator && clock.least < target.clock;
    });
  });
}

// A rank that is behind comes before the others: these may be late for its sake.
std::optional<Rank> CutRelay::late_rank() const {
  std::optional<Rank> late;
  for (const Rank rank : ranks_) {
    const Report* report = own_.of(rank);
    if (!is_late(report)) continue;
    if (is_behind(report)) return rank;
    if (!late) late = rank;
  }
  return late;
}

std::optional<NodeId> CutRelay::late_child() const {
  const auto late = std::ranges::find_if(
      links_.children, [this](NodeId child) { return is_late(below_.of(child)); });
  return late == links_.children.end() ? std::nullopt : std::optional(*late);
}

std::optional<CutRelay::UnderWay> CutRelay::under_way(std::uint64_t now_ns) const {
  if (!active_) return std::nullopt;
  const double seconds = 1e-9 * static_cast<double>(now_ns - std::min(began_ns_, now_ns));
  UnderWay it{cut_, seconds, late_rank(), "messages between ranks are on their way"};
  if (it.rank) {
    it.awaits = say_late(*it.rank, static_cast<std::uint32_t>(seconds));
  } else if (const auto child = late_child()) {
    it.awaits =
        fmt::format("a rank of node {}, or of one below it in the tree, is awaited", *child);
  }
  return it;
}

void CutRelay::find_late(std::uint32_t seconds) {
  if (const auto rank = late_rank()) return refuse(cut_, Code::again, say_late(*rank, seconds));
  if (const auto child = late_child()) {
    out_.emplace_back(TellAgent{*child, wire::peer::WhoIsLate{cut_, seconds}});
    return;
  }
  refuse(cut_, Code::again,
         fmt::format("messages between ranks have not arrived for {} s", seconds));
}

// --- ends ---------------------------------------------------------------------------------------

// Tells the next one on the way to the coordinator.
void CutRelay::refuse(cut::CutNumber cut, Code code, const std::string& why) {
  if (lead_) {
    lead_->refuse(cut, code, why, now_ns_);
    take_from_lead();
  } else if (links_.parent) {
    out_.emplace_back(TellAgent{*links_.parent, wire::RefuseCut{cut, code, why}});
  }
}

// The end for all below this agent.
void CutRelay::fail(Code code, const std::string& why) {
  if (!active_) return;
  const cut::CutNumber cut = cut_;
  refuse(cut, code, why);
  if (is_of_now(cut)) end({cut, code, why});
}

void CutRelay::end(const wire::CutOver& over) {
  if (over.cut < cut_ || (over.cut == cut_ && !active_)) return;
  const bool took_part = is_of_now(over.cut) && order_.what != Order::What::give_up;
  cut_ = over.cut;
  active_ = false;
  for (const NodeId child : links_.children) out_.emplace_back(TellAgent{child, over});
  if (over.code == Code::ok) {
    out_.emplace_back(CutSaved{});
  } else {
    if (took_part)
      tell_all(wire::CutOrder{cut_, std::uint32_t(Order::What::give_up), 0, 0, {}, {}});
    const bool held = took_part && order_.what == Order::What::save;
    out_.emplace_back(CutGivenUp{held ? order_.version : 0, over.code, over.message});
  }
  tell_who_asked(over);
}

void CutRelay::tell_who_asked(const wire::CutOver& over) {
  const bool again = over.code == Code::again;
  if (over.code != Code::ok) serving_.merge(asked_);
  for (const Rank rank : serving_) out_.emplace_back(TellRank{rank, over});
  if (again) asked_.merge(serving_);
  serving_.clear();
  if (again) return;
  if (asked_.empty()) ask_.reset();
  ask_sent_ = false;
}

}  // namespace backstay::agent
