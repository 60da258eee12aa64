// What comes to CutRelay: from ranks, from other agents, and from its own coordinator.
#include <fmt/format.h>

#include <algorithm>

#include "agent/cut/cut_relay.h"
#include "base/shorten.h"

namespace backstay::agent {

namespace {
constexpr std::size_t why_max = 400;
}

std::optional<Status> CutRelay::receive(Rank rank, const wire::Message& message) {
  if (const auto* asks = std::get_if<wire::AskCut>(&message)) {
    ask(rank, *asks);
  } else if (const auto* part = std::get_if<wire::CutReport>(&message)) {
    return report(rank, *part);
  } else if (const auto* refuses = std::get_if<wire::RefuseCut>(&message)) {
    if (is_of_now(refuses->cut)) {
      fail(
          refuses->code == Code::ok ? Code::again : refuses->code,
          fmt::format("rank {} ({}): {}", rank, facts_.host, shortened(refuses->message, why_max)));
    }
  } else {
    return std::nullopt;
  }
  return Status();
}

Status CutRelay::report(Rank rank, const wire::CutReport& part) {
  auto whole = parts_[rank].put(part);
  if (!whole.ok()) return whole.error();
  if (!whole->has_value()) return {};
  cut::Report report = **whole;
  if (report.ranks != 1 ||
      std::max({report.reached, report.standing, report.closed, report.saved, report.ended}) > 1) {
    return Error(Code::invalid, "a rank reports for others");
  }
  if (!is_of_now(report.cut)) return {};
  if (report.ended > 0) {
    fail(Code::rank_lost, fmt::format("rank {} ({}) has ended", rank, facts_.host));
    return {};
  }
  own_.put(rank, report);
  changed_ = true;
  return {};
}

// --- requests -----------------------------------------------------------------------------------

void CutRelay::ask(Rank rank, const wire::AskCut& ask) {
  asked_.insert(rank);
  want(ask);
}

void CutRelay::on(NodeId from, const wire::AskCut& ask) {
  if (is_child(from)) want(ask);
}

void CutRelay::want(const wire::AskCut& ask) {
  if (lead_) {
    lead_->ask(ask, now_ns_);
    return;
  }
  if (!ask_) ask_.emplace();
  ask_->after = std::max(ask_->after, ask.after);
  ask_->timeout_ms = ask.timeout_ms;
  ask_sent_ = false;
}

void CutRelay::ask_on() {
  if (!ask_ || ask_sent_ || !links_.parent) return;
  ask_sent_ = true;
  out_.emplace_back(TellAgent{*links_.parent, *ask_});
}

// --- other agents -------------------------------------------------------------------------------

void CutRelay::on(NodeId from, const wire::CutReport& part) {
  if (!is_child(from)) return;
  auto whole = child_parts_[from].put(part);
  if (!whole.ok()) return fail(whole.error().code(), whole.error().message());
  if (!whole->has_value() || !is_of_now((*whole)->cut)) return;
  below_.put(from, **whole);
  changed_ = true;
}

void CutRelay::on(NodeId from, const wire::RefuseCut& refused) {
  if (!is_child(from) || !is_of_now(refused.cut)) return;
  fail(refused.code == Code::ok ? Code::again : refused.code,
       shortened(refused.message, 2 * why_max));
}

void CutRelay::on(NodeId from, const wire::CutOrder& part) {
  if (!is_parent(from)) return;
  auto whole = order_parts_.put(part);
  if (!whole.ok()) return fail(whole.error().code(), whole.error().message());
  if (whole->has_value()) carry_out(**whole);
}

void CutRelay::on(NodeId from, const wire::CutOver& over) {
  if (is_parent(from)) end(over);
}

void CutRelay::on(NodeId from, const wire::peer::WhoIsLate& who) {
  if (is_parent(from) && is_of_now(who.cut)) find_late(who.seconds);
}

// --- the coordinator's owner --------------------------------------------------------------------

std::string CutRelay::missing() const {
  if (present_ >= facts_.nodes) return "";
  return fmt::format("the agents of {} of {} nodes are missing", facts_.nodes - present_,
                     facts_.nodes);
}

void CutRelay::pump() {
  ask_on();
  report_on();
  if (!lead_) return;
  lead_->pump(missing(), now_ns_);
  take_from_lead();
}

void CutRelay::take_from_lead() {
  for (CutLead::Output& output : lead_->take()) {
    if (const auto* order = std::get_if<cut::Order>(&output)) {
      if (order->cut > cut_) out_.emplace_back(CutBegan{order->cut});
      carry_out(*order);
    } else if (const auto* who = std::get_if<CutLead::Who>(&output)) {
      if (is_of_now(who->cut)) find_late(who->seconds);
    } else {
      const auto& over = std::get<CutLead::Over>(output);
      out_.emplace_back(CutEnded{over.message, over.seconds});
      end(over.message);
    }
  }
}

}  // namespace backstay::agent
