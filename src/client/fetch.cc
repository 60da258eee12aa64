#include "client/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checksum.h"

namespace backstay::client {

Result<ObjectReader::Last> Fetch::last(std::uint64_t bytes) {
  take_ = [this](std::uint64_t offset, Bytes piece) {
    std::memcpy(tail_.data() + (offset - begin_), piece.data(), piece.size());
    return Status();
  };
  BACKSTAY_TRY(run({version_, rank_, 0, bytes, true, run_}));
  return Last{std::move(tail_), object_bytes_};
}

Status Fetch::range(std::uint64_t begin, std::uint64_t bytes, Take take) {
  if (bytes == 0) return {};
  take_ = std::move(take);
  bytes_ = bytes;
  return run({version_, rank_, begin, bytes, false, run_});
}

Status Fetch::run(const wire::Fetch& what) {
  BACKSTAY_TRY(agent_.send(what));
  while (true) {
    BACKSTAY_ASSIGN(const wire::Message message, agent_.receive());
    Status status;
    if (const auto* plan = std::get_if<wire::Plan>(&message)) {
      if (plan->code != Code::ok) return Error(plan->code, plan->message);
      status = on(*plan, what);
    }
    if (const auto* chunks = std::get_if<wire::Chunks>(&message)) status = on(*chunks);
    if (const auto* deliver = std::get_if<wire::Deliver>(&message)) {
      if (deliver->version != version_ || !complete()) {
        return Error(Code::protocol, "the agent delivers what was not verified");
      }
      verifying_ = false;  // chunks that come again are here already
      status = agent_.send(wire::Restored{version_, Code::ok});
    }
    if (!status.ok()) {  // the agent waits for an answer; its next plan says what we refused
      verifying_ = false;
      BACKSTAY_TRY(
          agent_.send(wire::Refuse{version_, status.error().code(), status.error().message()}));
    }
    const auto* captured = std::get_if<wire::Captured>(&message);
    if (captured == nullptr || captured->version != version_) continue;
    if (captured->code != Code::ok) return Error(captured->code, captured->message);
    return {};
  }
}

Status Fetch::on(const wire::Plan& plan, const wire::Fetch& what) {
  attempt_ = plan.attempt;
  object_bytes_ = plan.object_bytes;
  begin_ = what.begin_in(object_bytes_);
  const std::uint64_t bytes = what.end_in(object_bytes_) - begin_;
  if (what.last) {
    tail_.resize(bytes);
    bytes_ = bytes;
  }
  if (bytes != bytes_) return Error(Code::corrupt, "the object ends before the region does");
  taken_.clear();
  verifying_ = true;
  return {};
}

Status Fetch::on(const wire::Chunks& chunks) {
  if (!verifying_ || chunks.version != version_ || chunks.attempt != attempt_) return {};
  wire::Verified answer{chunks.version, {}, true, "", chunks.attempt};
  for (const wire::ChunkInPool& chunk : chunks.chunks) {
    answer.buffers.push_back(chunk.buffer);
    const Status taken = answer.good ? check(chunk) : Status();
    if (taken.ok()) continue;
    if (taken.error().code() != Code::corrupt) return taken;
    answer.good = verifying_ = false;  // until the next plan
    answer.why = taken.error().message();
  }
  return agent_.send(answer);
}

Status Fetch::check(const wire::ChunkInPool& chunk) {
  const std::uint64_t offset = chunk.object_offset;
  if (offset > object_bytes_ || chunk.length > object_bytes_ - offset) {
    return Error(Code::corrupt, "a chunk lies outside of its object");
  }
  BACKSTAY_ASSIGN(const auto memory, agent_.buffer(chunk.buffer, chunk.length));
  BACKSTAY_TRY(expect_sum(chunk, checksum(memory)));
  const std::uint64_t from = std::max(offset, begin_);
  const std::uint64_t end = std::min(offset + chunk.length, begin_ + bytes_);
  if (from >= end) return {};
  BACKSTAY_TRY(take_(from, memory.subspan(from - offset, end - from)));
  taken_.emplace_back(from, end);
  return {};
}

// Every byte of the range was copied, once.
bool Fetch::complete() {
  std::sort(taken_.begin(), taken_.end());
  std::uint64_t next = begin_;
  for (const auto& [from, end] : taken_) {
    if (from != next) return false;
    next = end;
  }
  return verifying_ && next == begin_ + bytes_;
}

}  // namespace backstay::client
