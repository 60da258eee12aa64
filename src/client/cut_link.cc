#include "client/cut_link.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/shorten.h"
#include "base/tell.h"

namespace backstay::client {

namespace {
constexpr std::size_t why_max = 300;
}

Status CutLink::send(const wire::Message& message) {
  if (lost_ || connected_ != session_.connected_ || !connected())
    return Error(Code::agent_lost, "the agent is gone");
  return session_.agent_->send(message);
}

Status CutLink::request() {
  wanted_ = true;
  const double seconds = session_.config_.checkpoint.cut_timeout_s;
  return send(wire::AskCut{last_, static_cast<std::uint64_t>(seconds * 1000)});
}

Status CutLink::report(const cut::Report& report) {
  cut::Report own = report;
  own.newest = std::max(own.newest, session_.newest_used_);
  BACKSTAY_ASSIGN(const auto parts, cut::as_messages(own));
  for (const wire::CutReport& part : parts) BACKSTAY_TRY(send(part));
  return {};
}

Status CutLink::refuse(cut::CutNumber cut, const Error& why) {
  return send(wire::RefuseCut{cut, why.code(), shortened(why.message(), why_max)});
}

Status CutLink::save(ObjectSource& source) {
  if (session_.ordered_version_ == 0) return Error(Code::state, "no cut has ordered to save");
  VersionNumber version = 0;
  BACKSTAY_TRY(session_.next_version(version));
  if (!connected()) return Error(Code::agent_lost, "the agent is gone");
  std::string warning;
  BACKSTAY_TRY(capture(*session_.agent_, source, version, warning));
  if (!warning.empty() && session_.group_.local_rank() == 0) tell_user(warning);
  session_.version_ = version;
  return {};
}

std::vector<CutLink::News> CutLink::take() {
  std::vector<News> news;
  if (connected_ != session_.connected_) lose(news);
  if (!lost_) hear(news);
  if (!connected()) lose(news);
  if (lost_ && connected_ != session_.connected_ && connected()) {
    connected_ = session_.connected_;
    lost_ = false;
    news.emplace_back(AgentFound{});
    if (wanted_) (void)request();
    hear(news);
  }
  return news;
}

void CutLink::lose(std::vector<News>& news) {
  if (std::exchange(lost_, true)) return;
  parts_ = {};
  news.emplace_back(AgentLost{});
}

void CutLink::hear(std::vector<News>& news) {
  if (session_.agent_ == nullptr) return;
  for (const wire::Message& message : session_.agent_->take_unasked()) take(message, news);
}

void CutLink::take(const wire::Message& message, std::vector<News>& news) {
  if (const auto* over = std::get_if<wire::CutOver>(&message)) {
    if (over->code != Code::again) wanted_ = false;
    last_ = std::max(last_, over->cut);
    const Status how = over->code == Code::ok ? Status() : Status(Error(over->code, over->message));
    news.emplace_back(Over{over->cut, how});
    return;
  }
  auto whole = parts_.put(std::get<wire::CutOrder>(message));
  if (!whole.ok() || !whole->has_value()) return;  // malformed: the cut ends by its deadline
  const cut::Order& order = **whole;
  last_ = std::max(last_, order.cut);
  if (order.what == cut::Order::What::save) {
    session_.ordered_version_ = order.version;
    session_.ordered_by_ = session_.connected_;
  } else if (order.what == cut::Order::What::give_up) {
    session_.ordered_version_ = 0;
  }
  news.emplace_back(std::move(**whole));
}

int CutLink::descriptor() const {
  return session_.agent_ == nullptr ? -1 : session_.agent_->descriptor();
}

}  // namespace backstay::client
