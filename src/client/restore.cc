#include "client/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/failpoint.h"

namespace backstay::client {

namespace {
// Bytes of an object's end that are kept beyond the target's own table if chunks do not stay in the
// pool: room for about 40 000 routed files.
constexpr std::uint64_t tail_bytes_spare = std::uint64_t{4} << 20;

// What a target says that takes chunks early: the version is to be passed over, not this program.
Status early(const Status& placed) {
  if (placed.ok() || placed.error().code() == Code::rank_lost) return placed;
  return Error(Code::io, placed.error().message(), placed.error().sys_errno());
}

}  // namespace

Result<std::uint64_t> RestoreTarget::tail_bytes(Bytes footer, std::uint64_t object_bytes) {
  if (format::is_image(footer)) {
    return Error(Code::mismatch,
                 "this job's versions hold a whole process, saved by `backstay run --transparent`: "
                 "start it so, under another name with --job, or afresh with --fresh");
  }
  BACKSTAY_ASSIGN(const format::Footer read, format::decode_footer(footer, object_bytes));
  return read.table_bytes + format::object_footer_bytes;
}

Status RestoreTarget::match_tail(Bytes tail, std::uint64_t object_bytes) {
  const std::size_t table_bytes = tail.size() - format::object_footer_bytes;
  BACKSTAY_ASSIGN(const format::Footer footer,
                  format::decode_footer(tail.subspan(table_bytes), object_bytes));
  BACKSTAY_ASSIGN(const format::Table saved, format::decode_table(tail.first(table_bytes), footer));
  return match(saved);
}

RestoreOutcome Restore::run(const wire::Message& first) {
  outcome_.status = agent_.send(first);
  over_ = !outcome_.status.ok();
  while (!over_) {
    auto message = agent_.receive();
    Status status = message.ok() ? Status() : Status(message.error());
    if (message.ok()) {
      if (const auto* plan = std::get_if<wire::Plan>(&*message)) status = on(*plan);
      if (const auto* chunks = std::get_if<wire::Chunks>(&*message)) status = on(*chunks);
      if (const auto* ready = std::get_if<wire::Ready>(&*message)) status = on(*ready);
      if (const auto* deliver = std::get_if<wire::Deliver>(&*message)) status = on(*deliver);
      if (const auto* withdraw = std::get_if<wire::Withdraw>(&*message)) status = on(*withdraw);
      if (const auto* captured = std::get_if<wire::Captured>(&*message)) status = on(*captured);
    }
    if (status.ok()) continue;
    outcome_.status = status;
    over_ = true;
  }
  if (agree_ && !asked_) outcome_.agreed = agree_(outcome_.status);
  // An agent that has cut us off may have given our buffers to others.
  if (agent_.cut_off() && !exchanged_.empty()) outcome_.touched = true;
  if (!outcome_.touched) take_back();
  return outcome_;
}

Status Restore::on(const wire::Plan& plan) {
  outcome_.saved_ranks = plan.saved_ranks;
  if (plan.code == Code::rank_count && plan.saved_ranks == 0)
    return Error(Code::protocol, "the agent does not say how many ranks saved the version");
  if (plan.code == Code::rank_count) outcome_.version = plan.version;
  if (plan.code != Code::ok) return Error(plan.code, plan.message);
  if (asked_ || phase_ == Phase::delivering || phase_ == Phase::restored) {
    return Error(Code::protocol, "the agent planned again after it had delivered");
  }
  phase_ = Phase::verifying;
  outcome_.version = plan.version;
  outcome_.may_be_base = plan.may_be_base;
  attempt_ = plan.attempt;
  object_bytes_ = plan.object_bytes;
  from_pool_ = plan.from_pool;
  matched_.reset();
  verified_bytes_ = placed_bytes_ = 0;
  seen_.clear();
  held_.clear();
  exchanged_.clear();
  tail_.clear();
  return {};
}

Status Restore::on(const wire::Chunks& chunks) {
  if (chunks.version != outcome_.version || chunks.attempt != attempt_) return {};
  if (phase_ == Phase::verifying) return verify(chunks);
  if (phase_ == Phase::delivering) return again(chunks);
  return {};  // of a plan that is about to be replaced
}

// --- pass 1 --------------------------------------------------------------------------------------

Status Restore::verify(const wire::Chunks& chunks) {
  failpoint("rank.verify");
  wire::Verified answer{chunks.version, {}, true, "", chunks.attempt};
  answer.placed = takes_now(chunks.held);
  Status good;
  for (const wire::ChunkInPool& chunk : chunks.chunks) {
    answer.buffers.push_back(chunk.buffer);
    if (good.ok()) good = verify_one(chunk, chunks.held);
  }
  if (good.ok()) good = look_for_table();
  if (good.ok() && verified_bytes_ >= object_bytes_) good = check_cover();
  if (!good.ok() && good.error().code() == Code::corrupt) {
    phase_ = Phase::waiting;  // for the next plan
    answer.good = false;
    answer.why = good.error().message();
    return agent_.send(answer);
  }
  // Answers in any case, as the other ranks must not wait for this one.
  Status refused = good.ok() ? matched_.value_or(Status()) : good;
  if (refused.ok() && !answer.placed) refused = place_with_table(chunks, answer.placed);
  if (refused.ok()) refused = place_early();
  if (!refused.ok()) {
    phase_ = Phase::refused;
    return agent_.send(
        wire::Refuse{chunks.version, refused.error().code(), refused.error().message()});
  }
  exchange_held();
  return agent_.send(answer);
}

Status Restore::verify_one(const wire::ChunkInPool& chunk, bool held) {
  if (chunk.object_offset > object_bytes_ || chunk.length > object_bytes_ - chunk.object_offset) {
    return Error(Code::corrupt, "a chunk lies outside of its object");
  }
  BACKSTAY_ASSIGN(const auto memory, agent_.buffer(chunk.buffer, chunk.length));
  BACKSTAY_TRY(check_sum(chunk, memory, takes_now(held)));
  seen_.push_back({chunk.buffer, chunk.length, chunk.object_offset});
  verified_bytes_ += chunk.length;
  if (held) {
    held_.push_back(seen_.back());
  } else {
    keep_tail(chunk.object_offset, memory);
  }
  return {};
}

// Of chunks that do not stay: the target takes them while they are verified.
bool Restore::takes_now(bool held) const {
  return !held && matched_ && matched_->ok() && target_.takes_early();
}

// Damage counts more than a target that could not take the damaged bytes.
Status Restore::check_sum(const wire::ChunkInPool& chunk, Bytes memory, bool takes) {
  sum_.reset();
  Status placed;
  if (takes) {
    placed = early(target_.place(chunk.object_offset, memory, &sum_));
    if (placed.ok()) placed_bytes_ += chunk.length;
  }
  const std::uint64_t sum = takes && placed.ok() ? sum_.digest() : checksum(memory);
  const Status right = expect_sum(chunk, sum);
  return right.ok() ? placed : right;
}

// Chunks come in any order and their buffers are taken away, so those that may hold the table are
// kept until it is known.
void Restore::keep_tail(std::uint64_t offset, Bytes chunk) {
  const bool among = offset + chunk.size() > object_bytes_ - tail_bytes_kept();
  if (matched_ || !among) return;
  tail_.push_back({offset, Buffer(chunk.begin(), chunk.end())});
}

std::uint64_t Restore::tail_bytes_kept() const {
  return std::min(object_bytes_, target_.table_bytes() + tail_bytes_spare);
}

Status Restore::check_cover() {
  std::sort(seen_.begin(), seen_.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  std::uint64_t next = 0;
  for (const Extent& extent : seen_) {
    if (extent.offset != next) return Error(Code::corrupt, "the object's chunks leave gaps");
    next += extent.length;
  }
  if (next != object_bytes_) return Error(Code::corrupt, "the object's chunks overlap");
  return {};
}

// The object's last bytes, from the pool if they are still there.
Result<Buffer> Restore::last_bytes(std::uint64_t bytes) {
  const std::uint64_t begin = object_bytes_ - bytes;
  Buffer out(bytes);
  if (!tail_.empty() && bytes > tail_bytes_kept()) {
    return Error(
        Code::mismatch,
        fmt::format("the version was saved with a region table of {} bytes, far more than the "
                    "protected regions need: protect those that were saved, or start under another "
                    "job name",
                    bytes));
  }
  const auto copy = [&](std::uint64_t offset, Bytes chunk) {
    const std::uint64_t from = std::max(offset, begin);
    const std::uint64_t end = offset + chunk.size();
    if (end > from) {
      std::memcpy(out.data() + (from - begin), chunk.data() + (from - offset), end - from);
    }
  };
  for (const TailChunk& chunk : tail_) copy(chunk.offset, chunk.bytes);
  for (const Extent& extent : held_) {
    BACKSTAY_ASSIGN(const auto memory, agent_.buffer(extent.buffer, extent.length));
    copy(extent.offset, memory);
  }
  return out;
}

// How many of the object's last bytes are at hand.
std::uint64_t Restore::tail_at_hand() const {
  if (verified_bytes_ >= object_bytes_) return object_bytes_;
  for (const Extent& extent : held_) {
    if (extent.offset + extent.length == object_bytes_) return extent.length;
  }
  for (const TailChunk& chunk : tail_) {
    if (chunk.offset + chunk.bytes.size() == object_bytes_) return chunk.bytes.size();
  }
  return 0;
}

// The table is at the object's end: usually it is known with the last chunk.
Status Restore::look_for_table() {
  if (matched_) return {};
  const bool complete = verified_bytes_ >= object_bytes_;
  if (tail_at_hand() < format::object_footer_bytes) {
    if (!complete) return {};
    return Error(Code::corrupt, "the object is shorter than its footer");
  }
  BACKSTAY_ASSIGN(const Buffer last, last_bytes(format::object_footer_bytes));
  BACKSTAY_ASSIGN(const std::uint64_t needed, target_.tail_bytes(last, object_bytes_));
  if (tail_at_hand() < needed && !complete) return {};
  BACKSTAY_ASSIGN(const Buffer tail, last_bytes(needed));
  Status matched = target_.match_tail(tail, object_bytes_);
  if (!matched.ok() && matched.error().code() == Code::corrupt) return matched;
  matched_ = std::move(matched);
  tail_.clear();
  return {};
}

// The chunks that came with the table: nothing could be placed before.
Status Restore::place_with_table(const wire::Chunks& chunks, bool& placed) {
  if (!takes_now(chunks.held)) return {};
  for (const wire::ChunkInPool& chunk : chunks.chunks) {
    BACKSTAY_TRY(early(place_again(chunk)));
    placed_bytes_ += chunk.length;
  }
  placed = true;
  return {};
}

// The copying overlaps with reading and verifying. The chunks stay where they are.
Status Restore::place_early() {
  if (!matched_ || !target_.takes_early()) return {};
  for (const Extent& extent : held_) {
    BACKSTAY_ASSIGN(const auto memory, agent_.buffer(extent.buffer, extent.length));
    BACKSTAY_TRY(early(target_.place(extent.offset, memory, nullptr)));
    placed_bytes_ += extent.length;
  }
  held_.clear();
  return {};
}

// The pool's own copy of a version must not change, as other ranks may restart from it.
void Restore::exchange_held() {
  if (from_pool_ || !matched_) return;
  std::vector<Extent> waiting;
  for (const Extent& extent : held_) {
    const auto memory = agent_.buffer(extent.buffer, extent.length);
    BACKSTAY_CHECK(memory.ok());  // it was valid when it was verified
    const bool exchanged = target_.exchange(extent.offset, *memory);
    (exchanged ? exchanged_ : waiting).push_back(extent);
    if (exchanged) placed_bytes_ += extent.length;
  }
  held_ = std::move(waiting);
}

// In reverse, as a damaged index may name a place twice.
void Restore::take_back() {
  for (auto extent = exchanged_.rbegin(); extent != exchanged_.rend(); ++extent) {
    const auto memory = agent_.buffer(extent->buffer, extent->length);
    BACKSTAY_CHECK(memory.ok() && target_.exchange(extent->offset, *memory));
  }
  exchanged_.clear();
}

Status Restore::on(const wire::Withdraw& withdraw) {
  if (withdraw.attempt != attempt_ || phase_ == Phase::delivering || phase_ == Phase::restored) {
    return Error(Code::protocol, "the agent withdraws what it has not planned");
  }
  take_back();
  phase_ = Phase::waiting;
  return agent_.send(wire::Withdrawn{withdraw.version, withdraw.attempt});
}

// All ranks of this node have verified everything. The agent waits for the agreement of all nodes'
// ranks.
Status Restore::on(const wire::Ready& ready) {
  if (!agree_ || asked_ || ready.attempt != attempt_ || phase_ != Phase::verifying ||
      verified_bytes_ != object_bytes_ || object_bytes_ == 0) {
    return Error(Code::protocol, "the agent is ready with what was not verified");
  }
  failpoint("rank.ready");
  asked_ = true;
  outcome_.agreed = agree_(Status());
  phase_ = Phase::agreed;
  return agent_.send(wire::Proceed{ready.version, ready.attempt, outcome_.agreed.ok()});
}

// --- pass 2 --------------------------------------------------------------------------------------

Status Restore::on(const wire::Deliver& deliver) {
  const Phase before = agree_ ? Phase::agreed : Phase::verifying;
  if (deliver.version != outcome_.version || phase_ != before || !outcome_.agreed.ok() ||
      verified_bytes_ != object_bytes_ || object_bytes_ == 0) {
    return Error(Code::protocol, "the agent delivers what was not verified");
  }
  failpoint("rank.deliver");
  phase_ = Phase::delivering;
  outcome_.touched = true;
  for (const Extent& extent : held_) {
    BACKSTAY_ASSIGN(const auto memory, agent_.buffer(extent.buffer, extent.length));
    if (const Status placed = target_.place(extent.offset, memory, nullptr); !placed.ok()) {
      return give_up(placed);
    }
    placed_bytes_ += extent.length;
  }
  return finish_if_complete();
}

Status Restore::again(const wire::Chunks& chunks) {
  wire::Verified answer{chunks.version, {}, true, "", chunks.attempt};
  for (const wire::ChunkInPool& chunk : chunks.chunks) {
    if (const Status placed = place_again(chunk); !placed.ok()) return give_up(placed);
    answer.buffers.push_back(chunk.buffer);
    placed_bytes_ += chunk.length;
  }
  BACKSTAY_TRY(agent_.send(answer));  // gives the buffers back
  return finish_if_complete();
}

Status Restore::place_again(const wire::ChunkInPool& chunk) {
  if (chunk.object_offset > object_bytes_ || chunk.length > object_bytes_ - chunk.object_offset) {
    return Error(Code::protocol, "a chunk lies outside of its object");
  }
  BACKSTAY_ASSIGN(const auto memory, agent_.buffer(chunk.buffer, chunk.length));
  sum_.reset();
  BACKSTAY_TRY(target_.place(chunk.object_offset, memory, &sum_));
  if (!expect_sum(chunk, sum_.digest()).ok()) {
    return Error(Code::io, fmt::format("the chunk at {} was good when it was verified and is not "
                                       "any more",
                                       chunk.object_offset));
  }
  return {};
}

Status Restore::finish_if_complete() {
  if (placed_bytes_ < object_bytes_) return {};
  if (const Status finished = target_.finish(); !finished.ok()) return give_up(finished);
  outcome_.complete = true;
  phase_ = Phase::restored;
  failpoint("rank.restored");
  return agent_.send(wire::Restored{outcome_.version, Code::ok});
}

// The other ranks must not go on either.
Status Restore::give_up(const Status& why) {
  (void)agent_.send(wire::Restored{outcome_.version, Code::io});
  return Error(Code::io, why.error().message(), why.error().sys_errno());
}

Status Restore::on(const wire::Captured& captured) {
  if (phase_ != Phase::delivering && phase_ != Phase::restored) return {};  // of an older version
  if (captured.version != outcome_.version) return {};
  if (captured.code != Code::ok) return Error(captured.code, captured.message);
  if (!outcome_.complete) return Error(Code::protocol, "the agent ends the restart too early");
  over_ = true;
  return {};
}

}  // namespace backstay::client
