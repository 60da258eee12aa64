#include "client/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"

namespace backstay::client {

namespace {
// So that the agent writes some while others are filled, and one rank does not take them all.
constexpr std::uint64_t asked_max = 16;
}  // namespace

Result<Streams::Id> Streams::open(const std::string& name) {
  if (failed_) return *failed_;
  BACKSTAY_TRY(format::check_region_name(name));
  if (streams_.size() >= format::streams_max) {
    return Error(Code::too_large, "a rank may open 1000000 streams between two checkpoints");
  }
  if (!by_name_.try_emplace(name, streams_.size()).second) {
    return Error(Code::duplicate, fmt::format("a stream '{}' was opened since the last checkpoint: "
                                              "give each stream of a version its own name",
                                              name));
  }
  streams_.emplace_back().name = name;
  open_.push_back(true);
  return first_id_ + streams_.size() - 1;
}

format::Stream* Streams::find_open(Id id) {
  const std::uint64_t at = id - first_id_;  // wraps where it is older
  return at < streams_.size() && open_[at] ? &streams_[at] : nullptr;
}

Error Streams::not_open(Id id) const {
  const std::uint64_t at = id - first_id_;
  if (at < streams_.size()) {
    return {Code::state, fmt::format("stream '{}' is closed: open one of another name, or write "
                                     "all of it before it is closed",
                                     streams_[at].name)};
  }
  return {Code::state, fmt::format("no stream {} is open; a stream ends with the checkpoint that "
                                   "follows it, or with a restart",
                                   id)};
}

Status Streams::write(Connection* agent, VersionNumber version, Id id, const Place& from,
                      std::uint64_t bytes) {
  format::Stream* const stream = find_open(id);
  if (stream == nullptr) return not_open(id);
  if (failed_) return *failed_;
  if (bytes == 0) return {};
  if (agent == nullptr) return fail(Error(Code::agent_lost, "the agent is gone"));
  version_ = version;
  const Status done = put(*agent, *stream, from, bytes);
  return done.ok() ? done : fail(done.error());
}

Status Streams::put(Connection& agent, format::Stream& stream, const Place& from,
                    std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes;) {
    if (!filling_) BACKSTAY_TRY(next_buffer(agent, bytes - at));
    const std::uint64_t room = filling_->memory.size() - filling_->used;
    const std::uint64_t piece = std::min(bytes - at, room);
    BACKSTAY_TRY(copy_in(from, at, filling_->memory.subspan(filling_->used, piece), sum_));
    filling_->used += piece;
    stream.append(bytes_, piece);
    bytes_ += piece;
    at += piece;
    if (piece == room) BACKSTAY_TRY(hand_over());
  }
  return {};
}

// Asks for what this call will fill and no more, and only while it holds none: a rank that computes
// keeps no buffer from others but the one that it has begun, and one that waits keeps none.
Status Streams::next_buffer(Connection& agent, std::uint64_t wanted_bytes) {
  if (granted_.empty() && asked_ == 0) {
    const std::uint64_t needed = (wanted_bytes - 1) / agent.buffer_bytes() + 1;
    asked_ = static_cast<std::uint32_t>(std::min(needed, asked_max));
    failpoint("streams.more");
    BACKSTAY_TRY(agent.send(wire::More{version_, asked_}));
    begun_at_ = &agent;
  }
  while (granted_.empty()) BACKSTAY_TRY(receive(agent));
  const std::uint32_t index = granted_.front();
  granted_.pop_front();
  BACKSTAY_ASSIGN(const auto memory, agent.buffer(index, agent.buffer_bytes()));
  filling_ = Filling{index, memory, 0};
  sum_.reset();
  return {};
}

// The next message of the agent, which may be the end of the version.
Status Streams::receive(Connection& agent) {
  BACKSTAY_ASSIGN(const wire::Message message, agent.receive());
  if (const auto* outcome = std::get_if<wire::Captured>(&message)) {
    if (outcome->version != version_) return {};
    if (outcome->code == Code::ok)
      return Error(Code::internal, "captured in the middle of streams");
    return Error(outcome->code, outcome->message);
  }
  const auto* grant = std::get_if<wire::Grant>(&message);
  if (grant == nullptr || grant->version != version_) return {};
  granted_.insert(granted_.end(), grant->buffers.begin(), grant->buffers.end());
  asked_ -= std::min(asked_, static_cast<std::uint32_t>(grant->buffers.size()));
  return {};
}

Status Streams::hand_over() {
  if (!filling_) return {};
  const Filling full = *std::exchange(filling_, std::nullopt);
  const auto length = static_cast<std::uint32_t>(full.used);
  BACKSTAY_TRY(begun_at_->send(
      wire::Filled{version_, {{full.index, length, bytes_ - length, sum_.digest()}}}));
  failpoint("streams.filled");
  return {};
}

Status Streams::close(Id id) {
  if (find_open(id) == nullptr) return not_open(id);
  if (failed_) return *failed_;
  open_[id - first_id_] = false;
  return {};
}

Status Streams::ready() const {
  if (failed_) return *failed_;
  const auto open = std::ranges::find(open_, true);
  if (open == open_.end()) return {};
  return Error(Code::state,
               fmt::format("stream '{}' is open: close it before the checkpoint; what was written "
                           "to streams since the last one is dropped",
                           streams_[static_cast<std::size_t>(open - open_.begin())].name));
}

// The agent has back what it has lent.
Status Streams::fail(const Error& why) {
  failed_ = why;
  if (begun_at_ != nullptr) (void)begun_at_->send(wire::Abandon{version_});
  filling_.reset();
  granted_.clear();
  asked_ = 0;
  return why;
}

void Streams::give_up() {
  const bool told = failed_.has_value();
  if (begun_at_ != nullptr && !told) (void)begun_at_->send(wire::Abandon{version_});
  forget();
}

void Streams::agent_is_lost() {
  if (!begun() || failed_) return;
  failed_ = Error(Code::agent_lost,
                  "the agent is gone, and with it what was written to streams since the last "
                  "checkpoint: write it again after the checkpoint that fails");
  filling_.reset();
  granted_.clear();
  asked_ = 0;
  begun_at_ = nullptr;
}

void Streams::forget() {
  first_id_ += streams_.size();
  streams_.clear();
  open_.clear();
  by_name_.clear();
  bytes_ = version_ = 0;
  begun_at_ = nullptr;
  granted_.clear();
  asked_ = 0;
  filling_.reset();
  failed_.reset();
}

}  // namespace backstay::client
