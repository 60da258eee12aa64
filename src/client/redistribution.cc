#include "client/redistribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "client/blocks.h"
#include "client/place.h"

namespace backstay::client {

namespace {

constexpr std::uint32_t compared_buffers = 16;

// In bytes: the last dimension counts them, so that positions may lie inside of an element.
Block block_of(const format::Region& region) {
  Block block{region.shape, region.global_offset};
  block.shape.back() *= format::element_bytes(region.type);
  block.offset.back() *= format::element_bytes(region.type);
  return block;
}

// Copies a piece of the saved block's memory to the places of its elements in the present block.
Status place_runs(const CommonRuns& runs, const Place& to, std::uint64_t offset, Bytes piece) {
  const std::uint64_t end = offset + piece.size();
  for (std::uint64_t index = runs.first_ending_after(offset); index < runs.count(); ++index) {
    const CommonRuns::Run run = runs.at(index);
    if (run.from >= end) break;
    const std::uint64_t from = std::max(run.from, offset);
    const std::uint64_t bytes = std::min(run.from + run.length, end) - from;
    BACKSTAY_TRY(copy_out(to, run.to + (from - run.from), piece.subspan(from - offset, bytes),
                          /*sum=*/nullptr));
  }
  return {};
}

}  // namespace

Redistribution::Redistribution(const Group& group, SavedObjects& saved, const Regions& regions,
                               const Origin& origin, VersionNumber version,
                               std::uint32_t saved_ranks)
    : group_(group),
      saved_(saved),
      regions_(regions),
      origin_(origin),
      version_(version),
      saved_ranks_(saved_ranks) {}

Status Redistribution::run(bool& touched) {
  BACKSTAY_TRY(share_tables());
  BACKSTAY_TRY(group_.agree(plan()));
  BACKSTAY_TRY(group_.agree(group_.rank() == 0 ? compare_copies() : Status()));
  failpoint("redistribute.verify");
  BACKSTAY_TRY(group_.agree(needed_.verify(saved_)));
  failpoint("redistribute.take");
  touched = true;
  return group_.agree(needed_.take(saved_));
}

// --- tables --------------------------------------------------------------------------------------

// For each saved rank: where its table begins in the object, the length of the rest, and the rest.
Result<Buffer> Redistribution::read_tables() {
  ByteWriter all;
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    BACKSTAY_ASSIGN(format::Table table, saved_.of(rank)->table());
    const std::uint64_t begin = format::lay_out(table.regions);
    const Buffer tail = format::encode_tail(table.regions, begin, table.notes);
    all.put(begin);
    all.put(std::uint64_t{tail.size()});
    all.put_bytes(tail);
  }
  return all.take();
}

Status Redistribution::share_tables() {
  Result<Buffer> all = group_.rank() == 0 ? read_tables() : Buffer();
  BACKSTAY_TRY(group_.agree(all.ok() ? Status() : Status(all.error())));
  std::uint64_t bytes = all->size();
  BACKSTAY_TRY(group_.broadcast(&bytes, sizeof bytes));
  all->resize(bytes);
  BACKSTAY_TRY(group_.broadcast(all->data(), bytes));
  ByteReader reader(*all);
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    const auto begin = reader.get<std::uint64_t>();
    const Bytes tail = reader.bytes(reader.get<std::uint64_t>());
    if (!reader.ok() || tail.size() < format::object_footer_bytes) {
      return Error(Code::internal, "rank 0 handed over half a table");
    }
    BACKSTAY_TRY(take_table(tail, begin));
  }
  return {};
}

// The end of one rank's object, whose table begins at `begin`.
Status Redistribution::take_table(Bytes tail, std::uint64_t begin) {
  BACKSTAY_ASSIGN(
      const format::Footer footer,
      format::decode_footer(tail.last(format::object_footer_bytes), begin + tail.size()));
  BACKSTAY_ASSIGN(format::Table saved,
                  format::decode_table(tail.first(footer.table_bytes), footer));
  BACKSTAY_TRY(origin_.check(saved));
  Table& table = tables_.emplace_back();
  for (format::Region& region : saved.regions) {
    if (region.kind == format::RegionKind::file) {
      table.files.push_back(region.name);
    } else if (region.kind == format::RegionKind::streams) {
      table.has_streams = true;
    } else {
      table.arrays.emplace(region.name, std::move(region));
    }
  }
  return {};
}

const format::Region* Redistribution::saved_region(Rank rank, const std::string& name) const {
  const auto found = tables_[rank].arrays.find(name);
  return found == tables_[rank].arrays.end() ? nullptr : &found->second;
}

// --- what goes where -----------------------------------------------------------------------------

Error Redistribution::refusal(const std::string& what) const {
  return Error(Code::rank_count,
               fmt::format("version {} was saved by {} ranks and cannot be brought back on {}: {}; "
                           "or start {} ranks, or start afresh with `backstay run --fresh`",
                           version_, saved_ranks_, group_.ranks(), what, saved_ranks_));
}

Status Redistribution::plan() {
  BACKSTAY_TRY(check_names());
  for (const auto& [age, present] : regions_.all()) {
    const bool has_place = !present.description.global_shape.empty();
    BACKSTAY_TRY(has_place ? plan_blocks(present) : plan_copy(present));
  }
  return {};
}

Status Redistribution::check_names() const {
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    if (!tables_[rank].files.empty()) {
      return refusal(
          fmt::format("rank {} saved the file '{}', and files belong to their ranks: "
                      "save what it holds as an array with its place in a global one",
                      rank, tables_[rank].files.front()));
    }
    if (tables_[rank].has_streams) {
      return refusal(
          fmt::format("rank {} saved streams, and streams belong to their ranks: save what they "
                      "hold as an array with its place in a global one",
                      rank));
    }
    for (const auto& [name, saved] : tables_[rank].arrays) {
      if (regions_.find(name) != nullptr) continue;
      return refusal(
          fmt::format("region '{}' ({}) was saved and is not protected now: protect "
                      "it before backstay_restart",
                      name, shape_text(saved)));
    }
  }
  return {};
}

// Disjoint parts whose sizes add up to the whole block cover it.
Status Redistribution::plan_blocks(const ProtectedRegion& present) {
  const format::Region& now = present.description;
  const Block mine = block_of(now);
  std::vector<std::pair<Rank, Block>> parts;
  std::uint64_t covered = 0;
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    const format::Region* saved = saved_region(rank, now.name);
    if (saved == nullptr) continue;
    if (saved->type != now.type || saved->global_shape != now.global_shape) {
      return refusal(
          fmt::format("rank {} saved region '{}' as {}, and it is protected as {}: "
                      "protect it with the same type and global shape",
                      rank, now.name, shape_text(*saved), shape_text(now)));
    }
    const Block theirs = block_of(*saved);
    const auto common = intersection(theirs, mine);
    if (!common) continue;
    for (const auto& [other, part] : parts) {
      if (!intersection(part, *common)) continue;
      return refusal(
          fmt::format("ranks {} and {} saved the same elements of region '{}', and "
                      "which of them are right is not known: protect only what a rank "
                      "owns, without its halo",
                      other, rank, now.name));
    }
    parts.emplace_back(rank, *common);
    covered += common->volume();
    const CommonRuns runs(theirs, mine, *common);
    const std::uint64_t base = saved->offset;
    const Place place{present.data, present.on_device, -1};
    needed_.add(rank, base + runs.begin(), runs.end() - runs.begin(),
                [runs, place, base](std::uint64_t offset, Bytes piece) {
                  return place_runs(runs, place, offset - base, piece);
                });
  }
  if (covered == mine.volume()) return {};
  return refusal(
      fmt::format("what was saved of region '{}' does not cover {}: protect the whole "
                  "global array, each element on one rank",
                  now.name, shape_text(now)));
}

// A region without a place in a global array is the same on all ranks, so any copy will do.
Status Redistribution::plan_copy(const ProtectedRegion& present) {
  const format::Region& now = present.description;
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    const format::Region* saved = saved_region(rank, now.name);
    if (saved == nullptr) {
      return refusal(
          fmt::format("region '{}' ({}) is protected and rank {} did not save it: "
                      "protect it after backstay_restart",
                      now.name, shape_text(now), rank));
    }
    if (saved->type == now.type && saved->shape == now.shape && saved->global_shape.empty()) {
      continue;
    }
    return refusal(
        fmt::format("rank {} saved region '{}' as {}, and it is protected as {}: "
                    "declare its place in a global array with backstay_protect_array, "
                    "in the run that saves and in the run that restarts",
                    rank, now.name, shape_text(*saved), shape_text(now)));
  }
  const Rank from = static_cast<Rank>(group_.rank()) % saved_ranks_;
  const std::uint64_t base = saved_region(from, now.name)->offset;
  const Place place{present.data, present.on_device, -1};
  needed_.add(from, base, now.bytes, [place, base](std::uint64_t offset, Bytes piece) {
    return copy_out(place, offset - base, piece, /*sum=*/nullptr);
  });
  return {};
}

// --- comparing -----------------------------------------------------------------------------------

// Compares in parts, as rank 0 holds a copy of each part.
Status Redistribution::compare_copies() {
  const std::uint64_t bytes_max = std::uint64_t{compared_buffers} * saved_.piece_bytes();
  std::vector<Cut> cuts;
  std::uint64_t bytes = 0;
  for (const auto& [age, present] : regions_.all()) {
    const format::Region& region = present.description;
    if (!region.global_shape.empty()) continue;
    for (std::uint64_t offset = 0; offset < region.bytes; offset += cuts.back().bytes) {
      if (bytes == bytes_max) {
        BACKSTAY_TRY(compare(cuts));
        cuts.clear();
        bytes = 0;
      }
      cuts.push_back({region.name, offset, std::min(region.bytes - offset, bytes_max - bytes)});
      bytes += cuts.back().bytes;
    }
  }
  return compare(cuts);
}

Status Redistribution::compare(const std::vector<Cut>& cuts) {
  std::vector<Buffer> first;  // rank 0's copy
  for (const Cut& cut : cuts) first.emplace_back(cut.bytes);
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    Pieces saved;
    const std::string* differs = nullptr;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const std::uint64_t begin = saved_region(rank, cuts[i].region)->offset + cuts[i].offset;
      saved.add(rank, begin, cuts[i].bytes, [&, i, begin](std::uint64_t offset, Bytes piece) {
        std::byte* copy = first[i].data() + (offset - begin);
        if (rank == 0) std::memcpy(copy, piece.data(), piece.size());
        if (std::memcmp(copy, piece.data(), piece.size()) != 0) differs = &cuts[i].region;
        return Status();
      });
    }
    BACKSTAY_TRY(saved.take(saved_));
    if (differs == nullptr) continue;
    return refusal(
        fmt::format("ranks 0 and {} saved different contents of region '{}', which has "
                    "no place in a global array: declare it with backstay_protect_array",
                    rank, *differs));
  }
  return {};
}

}  // namespace backstay::client
