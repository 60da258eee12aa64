#include "strategy/shared_files.h"

#include <sys/stat.h>

#include <map>
#include <utility>

#include "base/attempt.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/tell.h"
#include "format/names.h"

namespace backstay::strategy {

namespace {

std::uint64_t align_of(const Config& config) {
  struct stat facts {};
  std::uint64_t align = std::uint64_t{config.strategy.align_kib} << 10;
  if (align == 0 && ::stat(config.durable.dir.c_str(), &facts) == 0) {
    align = static_cast<std::uint64_t>(facts.st_blksize);
  }
  return round_up(std::max<std::uint64_t>(align, 1), format::segment_alignment);
}

}  // namespace

SharedFiles::SharedFiles(const Ranks& ranks, int each, std::uint32_t files)
    : ranks_(ranks),
      files_(files),
      align_(align_of(ranks.job.config)),
      round_pieces_(pieces_of_buffers(ranks.job.config)),
      group_(ranks, each) {
  if (!group_.writes()) return;
  const int groups = ceil_div(ranks.group.ranks(), each);
  file_ = share_of(group_.number(), groups, static_cast<int>(files));
  const int end = first_of_share(file_ + 1, groups, static_cast<int>(files));
  for (int group = first_of_share(file_, groups, static_cast<int>(files)); group < end; ++group) {
    writers_.push_back(group * each);
  }
}

Status SharedFiles::write(const NewVersion& version, client::Snapshot& snapshot,
                          RankReport& report) {
  const Clock& clock = system_clock();
  const bool writes = group_.writes();
  const std::uint64_t began = clock.monotonic_ns();
  Version mine;
  Status status = ranks_.transport->open(file_, path_of(version), ranks_.job.config.strategy.hints);
  const bool is_open = writes && status.ok();
  keep(status, attempt([&] { return prepare(); }));
  if (const Status all = ranks_.group.agree(status); !all.ok()) {
    if (is_open) (void)ranks_.transport->close();
    return all;
  }
  failpoint("strategy.opened");
  if (ranks_.group.rank() == 0 && std::exchange(is_first_, false)) tell_ignored_hints();
  const std::uint64_t opened_ns = clock.monotonic_ns();
  keep(status, attempt([&]() -> Status {
         if (!writes) return group_.send(snapshot, report);
         Status written = lay_out(snapshot, mine);
         if (mine.rounds != 0) keep(written, write_header(version));
         keep(written, write_fields(snapshot, mine));
         return written;
       }));
  const std::uint64_t written_ns = clock.monotonic_ns();
  failpoint("strategy.written");
  if (is_open) keep(status, ranks_.transport->close());
  failpoint("strategy.closed");
  BACKSTAY_TRY(ranks_.group.agree(status));
  const Status published = attempt([&] { return writes ? publish(version, mine) : Status(); });
  if (writes) {
    report.open_ns = opened_ns - began;
    report.write_ns = written_ns - opened_ns;
    report.close_ns = clock.monotonic_ns() - written_ns;
  }
  return ranks_.group.agree(published);
}

void SharedFiles::tell_ignored_hints() const {
  const std::string& hints = ranks_.job.config.strategy.hints;
  const std::string ignored = ranks_.transport->ignored(hints);
  if (!ignored.empty()) tell_user("strategy.hints: this MPI takes no notice of " + ignored);
}

// Throws std::bad_alloc.
Status SharedFiles::prepare() {
  if (!group_.writes()) return group_.prepare();
  if (!buffer_) buffer_.emplace(round_pieces_ * piece_bytes_of(ranks_.job.config));
  return {};
}

std::string SharedFiles::path_of(const NewVersion& version) const {
  const std::string folder = format::version_folder(ranks_.directory.job(), version.number);
  return ranks_.job.config.durable.dir + "/" +
         format::segment_name(folder, static_cast<NodeId>(std::max(file_, 0)));
}

// The number of rounds, then the bytes of each field in the file.
std::vector<std::uint64_t> SharedFiles::needs_of(const BytesOfFields& shapes) const {
  const std::uint64_t piece = piece_bytes_of(ranks_.job.config);
  std::vector<std::uint64_t> needs(1 + most_fields(shapes));
  for (std::size_t field = 0; 1 + field < needs.size(); ++field) {
    std::uint64_t pieces = 0;
    for (const auto& shape : shapes) {
      if (field >= shape.size()) continue;
      needs[1 + field] += format::slot_bytes(shape[field]);
      pieces += ceil_div(shape[field], piece);
    }
    needs[0] += ceil_div(pieces, round_pieces_);
  }
  return needs;
}

// The file's first writer sends each writer the number of rounds, the file's end and that writer's
// places. The number is 0 if the disk has no room.
Status SharedFiles::lay_out(const client::Snapshot& snapshot, Version& version) const {
  const Transport& transport = *ranks_.transport;
  BACKSTAY_ASSIGN(version.shapes, group_.take_shapes(snapshot));
  BytesOfFields all{needs_of(version.shapes)};
  Status reserved;
  if (!leads()) {
    BACKSTAY_TRY(transport.send_all(writers_.front(), all.front()));
    BACKSTAY_TRY(transport.wait());
    BACKSTAY_ASSIGN(all.front(), transport.receive_all<std::uint64_t>(writers_.front()));
  } else {
    for (std::size_t i = 1; i < writers_.size(); ++i) {
      BACKSTAY_ASSIGN(auto theirs, transport.receive_all<std::uint64_t>(writers_[i]));
      all.push_back(std::move(theirs));
    }
    std::uint64_t rounds = 0;
    for (auto& needs : all) {
      rounds = std::max(rounds, needs.front());
      needs.erase(needs.begin());
    }
    const std::uint64_t end = strategy::lay_out(all, align_);
    reserved = transport.reserve(end);
    if (!reserved.ok()) rounds = 0;
    for (auto& offsets : all) offsets.insert(offsets.begin(), {rounds, end});
    for (std::size_t i = 1; i < writers_.size(); ++i) {
      BACKSTAY_TRY(transport.send_all(writers_[i], all[i]));
    }
    BACKSTAY_TRY(transport.wait());
  }
  version.rounds = all.front()[0];
  version.end = all.front()[1];
  version.offsets.assign(all.front().begin() + 2, all.front().end());
  return reserved;
}

Status SharedFiles::write_header(const NewVersion& version) const {
  Buffer header;
  if (leads()) {
    header = format::encode(format::SegmentHeader{.job = ranks_.directory.job(),
                                                  .node = static_cast<NodeId>(file_),
                                                  .version = version.number,
                                                  .run = ranks_.job.run,
                                                  .created_ns = system_clock().wall_ns()});
    header.resize(format::slot_bytes(header.size()));
  }
  return ranks_.transport->write(0, header);
}

Status SharedFiles::write_fields(client::Snapshot& snapshot, Version& version) {
  Status status;
  std::uint64_t rounds = 0;
  std::uint64_t offset = 0;  // in the file, of what the buffer holds
  std::size_t used = 0;
  std::size_t pieces = 0;
  const bool has_room = version.rounds != 0;
  const auto write = [&] {
    if (has_room) keep(status, ranks_.transport->write(offset, buffer_->span().first(used)));
    offset += std::exchange(used, 0);
    pieces = 0;
    ++rounds;
  };
  const auto take = [&](const Chunk& chunk, const Fill& fill) -> Status {
    const auto slot = buffer_->span().subspan(used, format::slot_bytes(chunk.length));
    std::ranges::fill(slot.subspan(chunk.length), std::byte{0});
    const auto sum = fill(slot.first(chunk.length));
    version.chunks.push_back({.object = chunk.rank,
                              .length = chunk.length,
                              .object_offset = chunk.object_offset,
                              .segment_offset = offset + used,
                              .checksum = sum.ok() ? *sum : 0});
    used += slot.size();
    if (++pieces == round_pieces_) write();
    return sum.ok() ? Status() : Status(sum.error());
  };
  for (std::size_t field = 0; field < version.offsets.size(); ++field) {
    offset = version.offsets[field];
    keep(status, group_.take_field(snapshot, version.shapes, field, take));
    if (pieces != 0) write();
  }
  while (rounds < version.rounds) write();  // each writer of the file makes as many calls
  return status;
}

Status SharedFiles::publish(const NewVersion& version, Version& written) const {
  const Transport& transport = *ranks_.transport;
  if (!leads()) {
    BACKSTAY_TRY(transport.send_all(writers_.front(), written.chunks));
    return transport.wait();
  }
  for (std::size_t i = 1; i < writers_.size(); ++i) {
    BACKSTAY_ASSIGN(const auto theirs, transport.receive_all<format::ChunkEntry>(writers_[i]));
    written.chunks.insert(written.chunks.end(), theirs.begin(), theirs.end());
  }
  store::PartEnd end{version.number, version.captured_ns, {}};
  std::map<std::uint64_t, std::uint64_t> bytes;  // by rank
  for (const format::ChunkEntry& chunk : written.chunks) bytes[chunk.object.number] += chunk.length;
  for (const auto& [rank, sum] : bytes) end.object_bytes.emplace_back(static_cast<Rank>(rank), sum);
  store::PartWriter part(ranks_.directory.tier(), ranks_.directory.job(),
                         info_of(ranks_, version, file_, files_));
  const auto finished = part.finish_written(end, std::move(written.chunks), written.end);
  return finished.ok() ? Status() : Status(finished.error());
}

}  // namespace backstay::strategy
