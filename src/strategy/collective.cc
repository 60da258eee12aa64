#include "strategy/collective.h"

#include "base/attempt.h"
#include "base/clock.h"
#include "strategy/groups.h"

namespace backstay::strategy {

Collective::Collective(const Ranks& ranks, std::uint32_t files) : ranks_(ranks), files_(files) {}

namespace {

std::vector<int> members_of(int group, int ranks, int files) {
  std::vector<int> members;
  for (int rank = first_of_share(group, ranks, files);
       rank < first_of_share(group + 1, ranks, files); ++rank) {
    members.push_back(rank);
  }
  return members;
}

}  // namespace

Status Collective::write(const NewVersion& version, client::Snapshot& snapshot,
                         RankReport& report) {
  const Clock& clock = system_clock();
  const int all = ranks_.group.ranks();
  const int files = static_cast<int>(files_);
  const int group = share_of(ranks_.group.rank(), all, files);
  GroupFile file(ranks_, group, files_, members_of(group, all, files));
  const auto fields = snapshot.fields();
  std::vector<std::uint64_t> extents;
  for (const auto& field : fields) extents.push_back(round_up(field.bytes, file.align()));

  const std::uint64_t began = clock.monotonic_ns();
  BACKSTAY_TRY(ranks_.group.agree(file.lay_out(extents)));
  const Status opened = ranks_.group.agree(file.open(version));
  const std::uint64_t opened_ns = clock.monotonic_ns();
  Status mine = opened;
  std::vector<format::ChunkEntry> chunks;
  for (std::uint64_t round = 0; opened.ok() && round < file.rounds(); ++round) {
    const bool has = round < fields.size();
    Buffer room;
    Bytes data;
    if (has) {
      const auto payload = payload_of(fields[round], room);
      keep(mine, payload.ok() ? Status() : Status(payload.error()));
      if (payload.ok()) data = *payload;
    }
    keep(mine, file.begin(round, data, has ? extents[round] : 0));
    if (has) {
      const auto more = chunks_of(static_cast<Rank>(ranks_.group.rank()), fields[round], data,
                                  file.offset(round), piece_bytes_of(ranks_.job.config));
      chunks.insert(chunks.end(), more.begin(), more.end());
    }
    keep(mine, file.end());
  }
  const std::uint64_t written_ns = clock.monotonic_ns();
  keep(mine, file.close());
  BACKSTAY_TRY(ranks_.group.agree(mine));
  const Status published = ranks_.group.agree(file.publish(version, chunks, report));
  report.open_ns = opened_ns - began;
  report.write_ns = written_ns - opened_ns;
  report.close_ns = clock.monotonic_ns() - written_ns;
  return published;
}

}  // namespace backstay::strategy
