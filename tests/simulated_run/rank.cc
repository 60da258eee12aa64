#include "simulated_run/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <variant>

#include "base/checksum.h"
#include "simulated_run/promises.h"

namespace backstay::simulated {

void SimulatedRank::connect(Send send, agent::Pool& pool) {
  disconnect();
  failure_.reset();
  send_ = std::move(send);
  pool_ = &pool;
}

void SimulatedRank::disconnect() {
  pool_ = nullptr;
  send_ = nullptr;
  inbox_.clear();
  welcome_.reset();
  candidate_.reset();
  saving_ = 0;
  ready_.reset();
  failure_ = Error(Code::agent_lost, "the agent is gone");
  if (phase_ != Phase::idle && phase_ != Phase::done) end_restart(*failure_);
}

void SimulatedRank::read_one() {
  const wire::Message message = std::move(inbox_.front());
  inbox_.pop_front();
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) welcome_ = *welcome;
  if (const auto* candidate = std::get_if<wire::Candidate>(&message)) candidate_ = *candidate;
  if (const auto* grant = std::get_if<wire::Grant>(&message)) on(*grant);
  if (const auto* plan = std::get_if<wire::Plan>(&message)) on(*plan);
  if (const auto* chunks = std::get_if<wire::Chunks>(&message)) on(*chunks);
  if (const auto* ready = std::get_if<wire::Ready>(&message)) ready_ = *ready;
  if (const auto* deliver = std::get_if<wire::Deliver>(&message)) on(*deliver);
  if (const auto* withdraw = std::get_if<wire::Withdraw>(&message)) on(*withdraw);
  if (const auto* captured = std::get_if<wire::Captured>(&message)) on(*captured);
  if (const auto* failure = std::get_if<wire::Failure>(&message)) {
    const Error why(failure->code, failure->message);
    disconnect();
    failure_ = why;
  }
}

std::string SimulatedRank::describe() const {
  return fmt::format(
      "restart phase {}, version {}, attempt {}, ready {}, mail {}, saving {}, {} of {} bytes sent",
      static_cast<int>(phase_), plan_.version, plan_.attempt, ready_.has_value(), inbox_.size(),
      saving_, sent_, outgoing_.size());
}

void SimulatedRank::ask_for_candidate(const wire::Candidates& question) {
  candidate_.reset();
  say(question);
}

// --- a checkpoint ------------------------------------------------------------------------------

void SimulatedRank::save(VersionNumber version, std::vector<std::byte> object, VersionNumber base,
                         const std::vector<std::size_t>& chunks) {
  saving_ = version;
  outgoing_ = std::move(object);
  sent_ = chunks.size() * buffer_bytes;
  captured_.reset();
  wire::Kept kept{version, base, outgoing_.size() - sent_, {}};
  for (const std::size_t chunk : chunks) {
    kept.chunks.push_back({chunk * buffer_bytes, buffer_bytes});
  }
  if (base != 0) say(kept);
  say(wire::Begin{version, outgoing_.size()});
}

void SimulatedRank::on(const wire::Grant& grant) {
  if (grant.version != saving_) return;
  wire::Filled filled{grant.version, {}};
  for (const std::uint32_t buffer : grant.buffers) {
    const auto memory = pool_->buffer(buffer);
    const Bytes piece =
        Bytes(outgoing_).subspan(sent_, std::min(memory.size(), outgoing_.size() - sent_));
    std::memcpy(memory.data(), piece.data(), piece.size());
    filled.chunks.push_back(
        {buffer, static_cast<std::uint32_t>(piece.size()), sent_, checksum(piece)});
    sent_ += piece.size();
  }
  say(filled);
  if (sent_ == outgoing_.size()) say(wire::End{saving_});
}

// --- a restart ---------------------------------------------------------------------------------

void SimulatedRank::restart(const wire::Restart& wanted) {
  restored_.reset();
  ready_.reset();
  phase_ = Phase::waiting;
  say(wanted);
}

void SimulatedRank::end_restart(Status status) {
  phase_ = Phase::done;
  ready_.reset();
  restored_ = std::move(status);
}

void SimulatedRank::on(const wire::Plan& plan) {
  if (phase_ == Phase::idle || phase_ == Phase::done) return;
  plan_ = plan;
  if (plan.code != Code::ok) return end_restart(Error(plan.code, plan.message));
  phase_ = Phase::verifying;
  ready_.reset();
  held_.clear();
  delivered_ = 0;
  object_.assign(plan.object_bytes, std::byte{0});
}

// Into the object; whether the chunk is what the agent says.
bool SimulatedRank::copy(const wire::ChunkInPool& chunk) {
  const Bytes piece = pool_->buffer(chunk.buffer).first(chunk.length);
  if (checksum(piece) != chunk.checksum) return false;
  if (chunk.object_offset + chunk.length > object_.size()) return false;
  std::memcpy(object_.data() + chunk.object_offset, piece.data(), piece.size());
  return true;
}

void SimulatedRank::on(const wire::Chunks& chunks) {
  const bool wanted = phase_ == Phase::verifying || phase_ == Phase::delivering;
  if (!wanted || chunks.version != plan_.version || chunks.attempt != plan_.attempt) return;
  wire::Verified answer{chunks.version, {}, true, "", chunks.attempt};
  for (const wire::ChunkInPool& chunk : chunks.chunks) {
    answer.buffers.push_back(chunk.buffer);
    answer.good = answer.good && copy(chunk);
    if (phase_ == Phase::delivering) delivered_ += chunk.length;
    if (phase_ == Phase::verifying && chunks.held) held_.push_back(chunk);
  }
  if (!answer.good) {
    answer.why = "bad bytes";
    phase_ = Phase::waiting;
  }
  say(answer);
  finish_if_complete();
}

void SimulatedRank::proceed(bool good) {
  const wire::Ready ready = *ready_;
  ready_.reset();
  say(wire::Proceed{ready.version, ready.attempt, good});
}

void SimulatedRank::on(const wire::Withdraw& withdraw) {
  phase_ = Phase::waiting;
  say(wire::Withdrawn{withdraw.version, withdraw.attempt});
}

void SimulatedRank::on(const wire::Deliver&) {
  phase_ = Phase::delivering;
  for (const wire::ChunkInPool& chunk : held_) {
    if (!copy(chunk))
      return end_restart(Error(Code::internal, "a chunk changed while it was held"));
    delivered_ += chunk.length;
  }
  finish_if_complete();
}

void SimulatedRank::finish_if_complete() {
  if (phase_ != Phase::delivering || delivered_ != object_.size()) return;
  delivered_ = 0;
  say(wire::Restored{plan_.version, Code::ok});
}

void SimulatedRank::on(const wire::Captured& captured) {
  if (phase_ == Phase::delivering && captured.version == plan_.version) {
    return end_restart(captured.code == Code::ok ? Status()
                                                 : Status(Error(captured.code, captured.message)));
  }
  if (captured.version != saving_) return;
  captured_ = captured;
  if (captured.code != Code::ok) say(wire::Abandon{captured.version});
}

}  // namespace backstay::simulated
