#include "strategy/group_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "format/names.h"
#include "format/segment.h"

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

GroupFile::GroupFile(const Ranks& ranks, int group, std::uint32_t files, std::vector<int> members)
    : ranks_(ranks),
      group_(group),
      files_(files),
      members_(std::move(members)),
      align_(align_of(ranks.job.config)) {}

// The leader answers each member with the number of rounds, the file's end, and its places.
Status GroupFile::lay_out(const std::vector<std::uint64_t>& extents) {
  const Transport& transport = *ranks_.transport;
  std::vector<std::uint64_t> answer;
  if (!leads()) {
    BACKSTAY_TRY(transport.send_all(members_.front(), extents));
    BACKSTAY_ASSIGN(answer, transport.receive_all<std::uint64_t>(members_.front()));
    BACKSTAY_TRY(transport.wait());
  } else {
    std::vector<std::vector<std::uint64_t>> all{extents};
    for (std::size_t member = 1; member < members_.size(); ++member) {
      BACKSTAY_ASSIGN(auto theirs, transport.receive_all<std::uint64_t>(members_[member]));
      all.push_back(std::move(theirs));
    }
    Places places = strategy::lay_out(all, align_);
    for (auto& offsets : places.offsets) {
      offsets.insert(offsets.begin(), {places.fields, places.end});
    }
    for (std::size_t member = 1; member < members_.size(); ++member) {
      BACKSTAY_TRY(transport.send_all(members_[member], places.offsets[member]));
    }
    BACKSTAY_TRY(transport.wait());
    answer = std::move(places.offsets.front());
  }
  rounds_ = answer[0];
  end_ = answer[1];
  offsets_.assign(answer.begin() + 2, answer.end());
  return {};
}

Status GroupFile::open(const NewVersion& version) {
  const std::string folder = format::version_folder(ranks_.directory.job(), version.number);
  const std::string path = ranks_.job.config.durable.dir + "/" +
                           format::segment_name(folder, static_cast<NodeId>(std::max(group_, 0)));
  BACKSTAY_TRY(ranks_.transport->open(group_, path, ranks_.job.config.strategy.hints));
  is_open_ = group_ >= 0;
  return is_open_ ? write_header(version) : Status();
}

Status GroupFile::write_header(const NewVersion& version) {
  Buffer header;
  if (leads()) {
    header = format::encode(format::SegmentHeader{.job = ranks_.directory.job(),
                                                  .node = static_cast<NodeId>(group_),
                                                  .version = version.number,
                                                  .run = ranks_.job.run,
                                                  .created_ns = system_clock().wall_ns()});
  }
  const std::uint64_t zeros = header.empty() ? 0 : round_up(header.size(), align_) - header.size();
  BACKSTAY_TRY(ranks_.transport->write_begin(0, header, zeros));
  return ranks_.transport->write_end();
}

Status GroupFile::begin(std::uint64_t field, Bytes data, std::uint64_t extent) {
  const bool has = field < offsets_.size();
  return ranks_.transport->write_begin(has ? offsets_[field] : 0, data,
                                       has ? extent - data.size() : 0);
}

Status GroupFile::end() { return ranks_.transport->write_end(); }

Status GroupFile::close() {
  if (!std::exchange(is_open_, false)) return {};
  return ranks_.transport->close();
}

Status GroupFile::publish(const NewVersion& version, const std::vector<format::ChunkEntry>& chunks,
                          RankReport& report) {
  const Transport& transport = *ranks_.transport;
  if (!leads()) {
    BACKSTAY_TRY(transport.send_all(members_.front(), chunks));
    return transport.wait();
  }
  std::vector<format::ChunkEntry> all = chunks;
  for (std::size_t member = 1; member < members_.size(); ++member) {
    BACKSTAY_ASSIGN(const auto theirs, transport.receive_all<format::ChunkEntry>(members_[member]));
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  store::PartWriter part(ranks_.directory.tier(), ranks_.directory.job(),
                         info_of(ranks_, version, static_cast<std::uint32_t>(group_), files_));
  store::PartEnd end{.version = version.number,
                     .captured_ns = version.captured_ns,
                     .object_bytes = object_bytes_of(all)};
  BACKSTAY_ASSIGN(const store::FinishedPart finished,
                  part.finish_written(end, std::move(all), end_));
  report.payload_bytes = finished.record.payload_bytes;
  report.digest = finished.record.manifests_sum;
  return {};
}

}  // namespace backstay::strategy
