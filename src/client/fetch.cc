#include "client/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checksum.h"

namespace backstay::client {

namespace {
// The table of some hundred regions, and the footer.
constexpr std::uint64_t tail_bytes_usual = 64 * 1024;
}  // namespace

Result<std::vector<format::Region>> Fetch::table() {
  BACKSTAY_ASSIGN(Buffer tail, last(tail_bytes_usual));
  if (tail.size() < format::object_footer_bytes) {
    return Error(Code::corrupt, "the object is shorter than its footer");
  }
  BACKSTAY_ASSIGN(
      const format::Footer footer,
      format::decode_footer(Bytes(tail).last(format::object_footer_bytes), object_bytes_));
  const std::uint64_t needed = footer.table_bytes + format::object_footer_bytes;
  if (needed > tail.size()) {
    BACKSTAY_ASSIGN(tail, last(needed));
  }
  return format::decode_table(Bytes(tail).last(needed).first(footer.table_bytes), footer);
}

Result<Buffer> Fetch::last(std::uint64_t bytes) {
  BACKSTAY_TRY(run({version_, rank_, 0, bytes, true}));
  return std::move(tail_);
}

Status Fetch::range(std::uint64_t begin, std::span<std::byte> to) {
  if (to.empty()) return {};
  to_ = to;
  return run({version_, rank_, begin, to.size(), false});
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
    to_ = tail_;
  }
  if (bytes != to_.size()) return Error(Code::corrupt, "the object ends before the region does");
  copied_.clear();
  verifying_ = true;
  return {};
}

Status Fetch::on(const wire::Chunks& chunks) {
  if (!verifying_ || chunks.version != version_ || chunks.attempt != attempt_) return {};
  wire::Verified answer{chunks.version, {}, true, "", chunks.attempt};
  for (const wire::ChunkInPool& chunk : chunks.chunks) {
    answer.buffers.push_back(chunk.buffer);
    const Status copied = answer.good ? copy(chunk) : Status();
    if (copied.ok()) continue;
    if (copied.error().code() != Code::corrupt) return copied;
    answer.good = verifying_ = false;  // until the next plan
    answer.why = copied.error().message();
  }
  return agent_.send(answer);
}

Status Fetch::copy(const wire::ChunkInPool& chunk) {
  const std::uint64_t offset = chunk.object_offset;
  if (offset > object_bytes_ || chunk.length > object_bytes_ - offset) {
    return Error(Code::corrupt, "a chunk lies outside of its object");
  }
  BACKSTAY_ASSIGN(const auto memory, agent_.buffer(chunk.buffer, chunk.length));
  if (checksum(memory) != chunk.checksum) {
    return Error(Code::corrupt,
                 fmt::format("the chunk at {} (length {}) does not match its checksum", offset,
                             chunk.length));
  }
  const std::uint64_t from = std::max(offset, begin_);
  const std::uint64_t end = std::min(offset + chunk.length, begin_ + to_.size());
  if (from >= end) return {};
  std::memcpy(to_.data() + (from - begin_), memory.data() + (from - offset), end - from);
  copied_.emplace_back(from, end);
  return {};
}

// Every byte of the range was copied, once.
bool Fetch::complete() {
  std::sort(copied_.begin(), copied_.end());
  std::uint64_t next = begin_;
  for (const auto& [from, end] : copied_) {
    if (from != next) return false;
    next = end;
  }
  return verifying_ && next == begin_ + to_.size();
}

}  // namespace backstay::client
