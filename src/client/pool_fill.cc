#include "client/pool_fill.h"

#include <utility>

#include "base/failpoint.h"

namespace backstay::client {

void PoolFill::begin(Connection& agent, VersionNumber version, std::uint32_t asked) {
  agent_ = &agent;
  version_ = version;
  asked_ = window_ = asked;
}

void PoolFill::forget() {
  version_ = bytes_ = 0;
  granted_.clear();
  used_ = asked_ = window_ = 0;
}

Status PoolFill::give_up() {
  const VersionNumber version = version_;
  forget();
  return version == 0 ? Status() : agent_->send(wire::Abandon{version});
}

Status PoolFill::next_buffer(std::uint64_t wanted_bytes) {
  BACKSTAY_TRY(ask_for_more(wanted_bytes));
  while (granted_.empty()) {
    BACKSTAY_ASSIGN(const bool captured, receive());
    if (captured) return Error(Code::internal, "captured before the object was whole");
  }
  BACKSTAY_ASSIGN(buffer_, agent_->buffer(granted_.front(), agent_->buffer_bytes()));
  sum_.reset();
  return {};
}

Status PoolFill::ask_for_more(std::uint64_t wanted_bytes) {
  const auto has = static_cast<std::uint32_t>(granted_.size()) + asked_;
  if (habits_.asks_ahead ? 2 * has > window_ : has > 0) return {};
  if (!habits_.asks_ahead) {
    const std::uint64_t needed = (wanted_bytes - 1) / agent_->buffer_bytes() + 1;
    window_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, habits_.buffers_max));
  }
  failpoint(habits_.before_more);
  BACKSTAY_TRY(agent_->send(wire::More{version_, window_ - has}));
  asked_ += window_ - has;
  return {};
}

Result<bool> PoolFill::receive() {
  BACKSTAY_ASSIGN(const wire::Message message, agent_->receive());
  const auto* outcome = std::get_if<wire::Captured>(&message);
  if (outcome != nullptr && outcome->version == version_) {
    if (outcome->code != Code::ok) return Error(outcome->code, outcome->message);
    return true;
  }
  const auto* grant = std::get_if<wire::Grant>(&message);
  if (grant == nullptr || grant->version != version_) return false;
  granted_.insert(granted_.end(), grant->buffers.begin(), grant->buffers.end());
  asked_ -= std::min(asked_, static_cast<std::uint32_t>(grant->buffers.size()));
  return false;
}

Status PoolFill::hand_over() {
  if (used_ == 0) return {};
  const wire::ChunkInPool chunk{granted_.front(), used_, bytes_ - used_, sum_.digest()};
  granted_.pop_front();
  used_ = 0;
  BACKSTAY_TRY(agent_->send(wire::Filled{version_, {chunk}}));
  window_ = std::min(2 * window_, habits_.buffers_max);
  failpoint(habits_.after_filled);
  return {};
}

}  // namespace backstay::client
