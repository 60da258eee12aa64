#include "strategy/writer_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/clock.h"
#include "base/failpoint.h"

namespace backstay::strategy {

namespace {

// Goes before each piece that a worker sends.
struct Head {
  std::uint64_t sum = 0;
  bool was_read = true;  // else the worker tells why
};

}  // namespace

Buffers::Buffers(const Config& config) {
  const std::size_t count = pieces_of_buffers(config);
  all_.reserve(count);
  while (all_.size() < count) all_.emplace_back(piece_bytes_of(config));
}

WriterGroup::WriterGroup(const Ranks& ranks, int each)
    : ranks_(ranks),
      number_(ranks.group.rank() / each),
      first_(number_ * each),
      last_(std::min(first_ + each, ranks.group.ranks())) {}

Status WriterGroup::prepare() {
  if (!writes() && !buffers_) buffers_.emplace(ranks_.job.config);
  return {};
}

// The writer counts on every message, so a piece that cannot be read is sent too.
Status WriterGroup::send(client::Snapshot& snapshot, RankReport& report) {
  const Clock& clock = system_clock();
  const Transport& transport = *ranks_.transport;
  const std::uint64_t began = clock.monotonic_ns();
  const auto shape = snapshot.field_bytes();
  BACKSTAY_TRY(transport.send_all(first_, shape));
  Status mine;
  std::deque<Head> heads;
  std::size_t used = 0;  // buffers
  for (const std::uint64_t bytes : shape) {
    for (std::uint64_t at = 0; at < bytes;) {
      if (used == buffers_->count()) {
        BACKSTAY_TRY(transport.wait());
        used = 0;
      }
      const std::span<std::byte> memory = buffers_->at(used++);
      const auto piece = memory.first(std::min<std::uint64_t>(bytes - at, memory.size()));
      const auto sum = snapshot.read_next(piece);
      if (!sum.ok()) keep(mine, sum.error());
      heads.push_back(sum.ok() ? Head{.sum = *sum} : Head{.was_read = false});
      BACKSTAY_TRY(transport.send(first_, std::as_bytes(std::span(&heads.back(), 1))));
      BACKSTAY_TRY(transport.send(first_, piece));
      at += piece.size();
      failpoint("strategy.sending");
    }
  }
  const std::uint64_t handed = clock.monotonic_ns();
  keep(mine, transport.wait());
  report.hand_over_ns = handed - began;
  report.wait_ns = clock.monotonic_ns() - handed;
  report.writes = false;
  return mine;
}

Result<BytesOfFields> WriterGroup::take_shapes(const client::Snapshot& snapshot) const {
  BytesOfFields all{snapshot.field_bytes()};
  for (int rank = first_ + 1; rank < last_; ++rank) {
    BACKSTAY_ASSIGN(auto theirs, ranks_.transport->receive_all<std::uint64_t>(rank));
    all.push_back(std::move(theirs));
  }
  return all;
}

Status WriterGroup::take_field(client::Snapshot& snapshot, const BytesOfFields& shapes,
                               std::size_t field, const TakePiece& take) const {
  Status status;
  // The workers wait, so their pieces go before the writer's own.
  for (int next = first_ + 1; next <= last_; ++next) {
    const int rank = next < last_ ? next : first_;
    const auto& shape = shapes[static_cast<std::size_t>(rank - first_)];
    if (field >= shape.size()) continue;
    const Fill fill = [&](std::span<std::byte> memory) -> Result<std::uint64_t> {
      if (rank == first_) return snapshot.read_next(memory);
      Head head;
      BACKSTAY_TRY(ranks_.transport->receive(rank, std::as_writable_bytes(std::span(&head, 1))));
      BACKSTAY_TRY(ranks_.transport->receive(rank, memory));
      if (head.was_read) return head.sum;
      return Error(Code::rank_lost, fmt::format("rank {} could not read its regions", rank));
    };
    std::uint64_t begin = 0;  // of the field in its object
    for (std::size_t i = 0; i < field; ++i) begin += shape[i];
    for (std::uint64_t at = 0; at < shape[field];) {
      const auto length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(shape[field] - at, piece_bytes_of(ranks_.job.config)));
      keep(status, take({static_cast<Rank>(rank), begin + at, length}, fill));
      at += length;
    }
  }
  return status;
}

}  // namespace backstay::strategy
