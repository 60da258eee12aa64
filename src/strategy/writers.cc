#include "strategy/writers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/attempt.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "format/segment.h"
#include "store/catalog.h"
#include "strategy/groups.h"

namespace backstay::strategy {

// --- the messages --------------------------------------------------------------------------------

WriterGroup::WriterGroup(const Ranks& ranks, std::uint32_t each)
    : ranks_(ranks),
      number_(ranks.group.rank() / static_cast<int>(each)),
      count_(groups_of(ranks.group.ranks(), static_cast<int>(each))),
      first_(number_ * static_cast<int>(each)),
      last_(std::min(first_ + static_cast<int>(each), ranks.group.ranks())) {}

// The writer counts on every message, so an error does not end them.
Status WriterGroup::begin_sending(const client::Snapshot& snapshot) {
  const Transport& transport = *ranks_.transport;
  began_ns_ = system_clock().monotonic_ns();
  const auto fields = snapshot.fields();
  shapes_ = shapes_of(fields);
  rooms_.assign(fields.size(), {});
  sums_.clear();
  Status mine;
  BACKSTAY_TRY(transport.send_all(first_, shapes_));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    auto payload = payload_of(fields[i], rooms_[i]);
    if (!payload.ok()) {
      mine = payload.error();
      rooms_[i].resize(shapes_[i].bytes - shapes_[i].zeros);
      payload = Bytes(rooms_[i]);
    }
    for (const Piece& piece : pieces_of(shapes_[i], piece_bytes_of(ranks_.job.config))) {
      const Bytes bytes = payload->subspan(piece.offset, piece.length - piece.zeros);
      sums_.push_back(sum_of(bytes, piece.zeros));
      BACKSTAY_TRY(transport.send(first_, std::as_bytes(std::span(&sums_.back(), 1))));
      BACKSTAY_TRY(transport.send(first_, bytes));
    }
  }
  handed_ns_ = system_clock().monotonic_ns();
  return mine;
}

Status WriterGroup::finish_sending(RankReport& report) {
  const Status received = ranks_.transport->wait();
  report.hand_over_ns = handed_ns_ - began_ns_;
  report.wait_ns = system_clock().monotonic_ns() - handed_ns_;
  return received;
}

Result<std::vector<std::vector<FieldShape>>> WriterGroup::shapes(
    const client::Snapshot& snapshot) const {
  std::vector<std::vector<FieldShape>> all{shapes_of(snapshot.fields())};
  for (int rank = first_ + 1; rank < last_; ++rank) {
    BACKSTAY_ASSIGN(auto theirs, ranks_.transport->receive_all<FieldShape>(rank));
    all.push_back(std::move(theirs));
  }
  return all;
}

Status WriterGroup::receive(int rank, std::span<std::byte> piece, std::uint64_t& sum) const {
  BACKSTAY_TRY(ranks_.transport->receive(rank, std::as_writable_bytes(std::span(&sum, 1))));
  return ranks_.transport->receive(rank, piece);
}

Status WriterGroup::each_piece(const client::Snapshot& snapshot,
                               const std::vector<std::vector<FieldShape>>& shapes,
                               std::size_t field, const TakePiece& take) const {
  const std::uint32_t piece_bytes = piece_bytes_of(ranks_.job.config);
  for (std::size_t member = 0; member < shapes.size(); ++member) {
    if (field >= shapes[member].size()) continue;
    std::uint64_t begin = 0;  // of the field in its object
    for (std::size_t i = 0; i < field; ++i) begin += shapes[member][i].bytes;
    Buffer room;
    Bytes mine;
    if (member == 0) {
      BACKSTAY_ASSIGN(mine, payload_of(snapshot.fields()[field], room));
    }
    for (const Piece& piece : pieces_of(shapes[member][field], piece_bytes)) {
      const auto rank = static_cast<Rank>(first_ + static_cast<int>(member));
      const std::uint64_t payload = piece.length - piece.zeros;
      const auto fill = [&](std::span<std::byte> memory, std::uint64_t& sum) -> Status {
        std::memset(memory.data() + payload, 0, piece.zeros);
        if (member != 0) return receive(static_cast<int>(rank), memory.first(payload), sum);
        Checksum copied;
        client::copy_piece(memory.data(), mine.subspan(piece.offset, payload), copied);
        copied.update(memory.subspan(payload, piece.zeros));
        sum = copied.digest();
        return {};
      };
      BACKSTAY_TRY(take({rank, begin + piece.offset, piece.length}, fill));
    }
  }
  return {};
}

std::size_t most_fields(const std::vector<std::vector<FieldShape>>& shapes) {
  std::size_t most = 0;
  for (const auto& member : shapes) most = std::max(most, member.size());
  return most;
}

// --- a file each writer --------------------------------------------------------------------------

Writers::Writers(const Ranks& ranks, std::uint32_t each) : ranks_(ranks), group_(ranks, each) {}

Status Writers::write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) {
  return ranks_.group.agree(attempt([&] {
    if (group_.writes()) return take_in(version, snapshot, report);
    const Status begun = group_.begin_sending(snapshot);
    const Status sent = group_.finish_sending(report);
    return begun.ok() ? sent : begun;
  }));
}

Status Writers::take_in(const NewVersion& version, const client::Snapshot& snapshot,
                        RankReport& report) {
  const std::uint64_t began = system_clock().monotonic_ns();
  if (thread_ == nullptr) {
    thread_ = std::make_unique<WriterThread>(
        ranks_.job.config, [this](VersionNumber number, const Error& why) {
          (void)store::set_aside(ranks_.directory.tier(), ranks_.directory.job(), number,
                                 why.message());
        });
  }
  BACKSTAY_ASSIGN(const auto shapes, group_.shapes(snapshot));
  store::PartEnd end{version.number, version.captured_ns, {}};
  std::uint64_t bytes = 0;
  for (std::size_t member = 0; member < shapes.size(); ++member) {
    std::uint64_t object = 0;
    for (const FieldShape& field : shapes[member]) object += field.bytes;
    end.object_bytes.emplace_back(static_cast<Rank>(group_.first() + static_cast<int>(member)),
                                  object);
    bytes += object;
  }
  thread_->begin(
      std::make_unique<store::PartWriter>(
          ranks_.directory.tier(), ranks_.directory.job(),
          info_of(ranks_, version, static_cast<std::uint32_t>(group_.number()), files())),
      bytes);
  Status status;
  for (std::size_t field = 0; status.ok() && field < most_fields(shapes); ++field) {
    status = group_.each_piece(snapshot, shapes, field, [&](const Chunk& chunk, const Fill& fill) {
      const std::size_t buffer = thread_->buffer();
      const std::span<std::byte> memory = thread_->memory(buffer);
      std::uint64_t sum = 0;
      const Status filled = fill(memory, sum);
      thread_->filled(buffer, {chunk.rank, chunk.object_offset, chunk.length, sum, memory});
      return filled;
    });
  }
  status.ok() ? thread_->end(std::move(end)) : thread_->give_up(status.error());
  report.hand_over_ns = system_clock().monotonic_ns() - began;
  return status;
}

Status Writers::settle(RankReport& report) {
  return ranks_.group.agree(thread_ == nullptr ? Status() : thread_->wait(report));
}

Status Writers::so_far() { return thread_ == nullptr ? Status() : thread_->so_far(); }

// --- fewer files than writers --------------------------------------------------------------------

CollectiveWriters::CollectiveWriters(const Ranks& ranks, std::uint32_t each, std::uint32_t files)
    : ranks_(ranks), group_(ranks, each), each_(each), files_(files) {}

Status CollectiveWriters::write(const NewVersion& version, client::Snapshot& snapshot,
                                RankReport& report) {
  const int files = static_cast<int>(files_);
  const int number = group_.writes() ? share_of(group_.number(), group_.count(), files) : -1;
  std::vector<int> members;
  for (int writer = first_of_share(std::max(number, 0), group_.count(), files);
       writer < first_of_share(std::max(number, 0) + 1, group_.count(), files); ++writer) {
    members.push_back(writer * static_cast<int>(each_));
  }
  GroupFile file(ranks_, number, files_, std::move(members));
  Status mine = attempt(
      [&] { return group_.writes() ? lay_out(snapshot, file) : group_.begin_sending(snapshot); });
  const Clock& clock = system_clock();
  const std::uint64_t began = clock.monotonic_ns();
  const Status opened = ranks_.group.agree(file.open(version));
  const std::uint64_t opened_ns = clock.monotonic_ns();
  keep(mine, opened);
  keep(mine, attempt([&] {
         return group_.writes() ? write_fields(snapshot, opened.ok() ? &file : nullptr)
                                : group_.finish_sending(report);
       }));
  const std::uint64_t written_ns = clock.monotonic_ns();
  keep(mine, file.close());
  BACKSTAY_TRY(ranks_.group.agree(mine));
  const Status published =
      ranks_.group.agree(group_.writes() ? file.publish(version, chunks_, report) : Status());
  if (group_.writes()) {
    report.open_ns = opened_ns - began;
    report.write_ns = written_ns - opened_ns;
    report.close_ns = clock.monotonic_ns() - written_ns;
  }
  return published;
}

Status CollectiveWriters::lay_out(const client::Snapshot& snapshot, GroupFile& file) {
  BACKSTAY_ASSIGN(shapes_, group_.shapes(snapshot));
  extents_.assign(most_fields(shapes_), 0);
  for (const auto& member : shapes_) {
    for (std::size_t field = 0; field < member.size(); ++field) {
      extents_[field] += format::slot_bytes(member[field].bytes);
    }
  }
  for (std::uint64_t& extent : extents_) extent = round_up(extent, file.align());
  return file.lay_out(extents_);
}

// Without a file it only takes in what the workers send.
Status CollectiveWriters::write_fields(const client::Snapshot& snapshot, GroupFile* file) {
  Status status;
  chunks_.clear();
  const std::uint64_t rounds = file == nullptr ? extents_.size() : file->rounds();
  for (std::uint64_t field = 0; field < rounds; ++field) {
    const bool has = field < extents_.size();
    Buffer data(has ? extents_[field] : 0);
    std::uint64_t at = 0;
    const auto take = [&](const Chunk& chunk, const Fill& fill) -> Status {
      const auto slot = std::span(data).subspan(at, format::slot_bytes(chunk.length));
      std::uint64_t sum = 0;
      const Status filled = fill(slot, sum);
      const std::uint64_t offset = file == nullptr ? 0 : file->offset(field) + at;
      chunks_.push_back({.object = chunk.rank,
                         .length = chunk.length,
                         .object_offset = chunk.object_offset,
                         .segment_offset = offset,
                         .checksum = sum});
      at += slot.size();
      return filled;
    };
    if (has) keep(status, group_.each_piece(snapshot, shapes_, field, take));
    if (file == nullptr) continue;
    keep(status, file->begin(field, data, data.size()));
    keep(status, file->end());
  }
  return status;
}

}  // namespace backstay::strategy
