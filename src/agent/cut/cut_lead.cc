#include "agent/cut/cut_lead.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace backstay::agent {

namespace {

std::uint32_t whole_seconds(std::uint64_t ns) {
  return static_cast<std::uint32_t>(ns / CutLead::second_ns);
}

}  // namespace

void CutLead::ask(const wire::AskCut& ask, std::uint64_t now_ns) {
  last_ = std::max(last_, ask.after);
  if (ask.timeout_ms != 0) {
    timeout_ns_ = std::min<std::uint64_t>(ask.timeout_ms, 86'400'000) * (second_ns / 1000);
  }
  if (saves_) asked_again_ = true;
  if (busy() || wanted_) return;  // the cut that is under way, or comes, serves this one too
  wanted_ = true;
  began_ns_ = now_ns;
}

void CutLead::begin(std::uint64_t now_ns) {
  cut_.emplace(ranks_, last_++);
  code_ = Code::again;
  saves_ = asked_again_ = false;
  began_ns_ = now_ns;
  deadline_ns_ = now_ns + timeout_ns_;
  answer_by_ns_ = 0;
  cut_->request();
  collect(now_ns);
}

void CutLead::pump(const std::string& missing, std::uint64_t now_ns) {
  pumped_ns_ = now_ns;
  if (!busy() && wanted_ && now_ns >= not_before_ns_) {
    if (missing.empty()) {
      begin(now_ns);
    } else if (now_ns - began_ns_ >= missing_ns()) {
      ++last_;
      end(Code::again, missing, now_ns);
    }
  }
  if (!busy() || now_ns < deadline_ns_) return;
  const std::uint32_t seconds = whole_seconds(now_ns - began_ns_);
  if (answer_by_ns_ == 0) {
    answer_by_ns_ = now_ns + answer_ns;
    out_.emplace_back(Who{last_, seconds});
  } else if (now_ns >= answer_by_ns_) {
    give_up(Code::again, fmt::format("not all ranks have come to the cut within {} s", seconds),
            now_ns);
  }
}

std::uint64_t CutLead::wakes_at_ns() const {
  if (busy()) return answer_by_ns_ != 0 ? std::max(answer_by_ns_, deadline_ns_) : deadline_ns_;
  if (!wanted_) return never_ns;
  return not_before_ns_ > pumped_ns_ ? not_before_ns_ : began_ns_ + missing_ns();
}

void CutLead::refuse(cut::CutNumber cut, Code code, const std::string& why, std::uint64_t now_ns) {
  if (busy() && cut == last_) give_up(code, why, now_ns);
}

void CutLead::receive(const cut::Report& all, std::uint64_t now_ns) {
  if (!busy()) return;
  if (all.ended > 0) code_ = Code::rank_lost;
  cut_->receive(all);
  collect(now_ns);
}

void CutLead::give_up(Code code, const std::string& why, std::uint64_t now_ns) {
  code_ = code;
  cut_->give_up(why);
  collect(now_ns);
}

void CutLead::collect(std::uint64_t now_ns) {
  for (cut::CoordinatorOutput& output : cut_->take()) {
    if (const auto* ended = std::get_if<cut::Ended>(&output)) {
      end(ended->saved ? Code::ok : code_, ended->why, now_ns);
      return;
    }
    cut::Order& order = std::get<cut::Order>(output);
    if (order.what == cut::Order::What::give_up) continue;  // Over says so, and why
    if (order.what == cut::Order::What::save) saves_ = true;
    if (order.what == cut::Order::What::go_on) deadline_ns_ = never_ns;
    out_.emplace_back(std::move(order));
  }
}

void CutLead::end(Code code, const std::string& why, std::uint64_t now_ns) {
  cut_.reset();
  const std::uint64_t took_ns = now_ns - began_ns_;
  out_.emplace_back(Over{{last_, code, why}, 1e-9 * static_cast<double>(took_ns)});
  wanted_ = code == Code::again || asked_again_;
  saves_ = asked_again_ = false;
  began_ns_ = now_ns;
  if (code != Code::again) {
    failures_ = 0;
    not_before_ns_ = 0;
    return;
  }
  // Failing cuts take at most half of the time.
  const std::uint32_t doublings = std::min(failures_++, 16U);
  not_before_ns_ = now_ns + std::min(pause_max_ns, (took_ns + second_ns) << doublings);
  began_ns_ = not_before_ns_;
}

std::vector<CutLead::Output> CutLead::take() { return std::exchange(out_, {}); }

}  // namespace backstay::agent
