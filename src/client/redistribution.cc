#include "client/redistribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/blocks.h"
#include "client/place.h"

namespace backstay::client {

namespace {

// In bytes: the last dimension counts them, so that positions may lie inside of an element.
Block block_of(const format::Region& region) {
  Block block{region.shape, region.global_offset};
  block.shape.back() *= format::element_bytes(region.type);
  block.offset.back() *= format::element_bytes(region.type);
  return block;
}

// A piece of the saved block's memory goes to where its elements lie in the present one.
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

Redistribution::Redistribution(const Group& group, Connection& agent, const Regions& regions,
                               VersionNumber version, std::uint32_t saved_ranks)
    : group_(group),
      agent_(agent),
      regions_(regions),
      version_(version),
      saved_ranks_(saved_ranks) {}

Status Redistribution::run(bool& touched) {
  BACKSTAY_TRY(share_tables());
  BACKSTAY_TRY(group_.agree(plan()));
  BACKSTAY_TRY(group_.agree(group_.rank() == 0 ? compare_copies() : Status()));
  BACKSTAY_TRY(group_.agree(read_all(/*place=*/false)));
  touched = true;
  return group_.agree(read_all(/*place=*/true));
}

// --- tables --------------------------------------------------------------------------------------

// For each saved rank: where its table begins in the object, the length of the rest, and the rest.
Result<Buffer> Redistribution::read_tables() {
  ByteWriter all;
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    BACKSTAY_ASSIGN(Table table, Fetch(agent_, version_, rank).table());
    const std::uint64_t begin = format::lay_out(table);
    const Buffer tail = format::encode_tail(table, begin);
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
    BACKSTAY_ASSIGN(
        const format::Footer footer,
        format::decode_footer(tail.last(format::object_footer_bytes), begin + tail.size()));
    BACKSTAY_ASSIGN(Table table, format::decode_table(tail.first(footer.table_bytes), footer));
    tables_.push_back(std::move(table));
  }
  return {};
}

const format::Region* Redistribution::saved_region(Rank rank, const std::string& name) const {
  const Table& table = tables_[rank];
  const auto found = std::find_if(table.begin(), table.end(), [&](const format::Region& region) {
    return region.kind == format::RegionKind::array && region.name == name;
  });
  return found == table.end() ? nullptr : &*found;
}

// --- what goes where -----------------------------------------------------------------------------

Error Redistribution::refusal(const std::string& what) const {
  return Error(Code::rank_count,
               fmt::format("version {} was saved by {} ranks and cannot be brought back on {}: {}; "
                           "or start {} ranks",
                           version_, saved_ranks_, group_.ranks(), what, saved_ranks_));
}

Status Redistribution::plan() {
  transfers_.clear();
  BACKSTAY_TRY(check_names());
  for (const auto& [age, present] : regions_.all()) {
    const bool has_place = !present.description.global_shape.empty();
    BACKSTAY_TRY(has_place ? plan_blocks(present) : plan_copy(present));
  }
  return {};
}

Status Redistribution::check_names() const {
  for (Rank rank = 0; rank < saved_ranks_; ++rank) {
    for (const format::Region& saved : tables_[rank]) {
      if (saved.kind == format::RegionKind::file) {
        return refusal(
            fmt::format("rank {} saved the file '{}', and files belong to their ranks: "
                        "save what it holds as an array with its place in a global one",
                        rank, saved.name));
      }
      if (regions_.find(saved.name) == nullptr) {
        return refusal(
            fmt::format("region '{}' ({}) was saved and is not protected now: protect "
                        "it before backstay_restart",
                        saved.name, shape_text(saved)));
      }
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
    transfers_.push_back({rank, base + runs.begin(), runs.end() - runs.begin(),
                          [runs, place, base](std::uint64_t offset, Bytes piece) {
                            return place_runs(runs, place, offset - base, piece);
                          }});
  }
  if (covered == mine.volume()) return {};
  return refusal(
      fmt::format("what was saved of region '{}' does not cover {}: protect the whole "
                  "global array, each element on one rank",
                  now.name, shape_text(now)));
}

// Without a place in a global array: the same on all ranks, so any copy will do.
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
  transfers_.push_back({from, base, now.bytes, [place, base](std::uint64_t offset, Bytes piece) {
                          return copy_out(place, offset - base, piece, /*sum=*/nullptr);
                        }});
  return {};
}

// --- moving --------------------------------------------------------------------------------------

Status Redistribution::compare_copies() {
  for (const auto& [age, present] : regions_.all()) {
    if (!present.description.global_shape.empty()) continue;
    BACKSTAY_TRY(compare_copies_of(present.description.name));
  }
  return {};
}

Status Redistribution::compare_copies_of(const std::string& name) {
  const format::Region& first = *saved_region(0, name);
  Buffer copy(first.bytes);
  BACKSTAY_TRY(Fetch(agent_, version_, 0).range(first.offset, copy));
  for (Rank rank = 1; rank < saved_ranks_; ++rank) {
    const std::uint64_t base = saved_region(rank, name)->offset;
    bool same = true;
    const auto compare = [&](std::uint64_t offset, Bytes piece) {
      same = same && std::memcmp(copy.data() + (offset - base), piece.data(), piece.size()) == 0;
      return Status();
    };
    BACKSTAY_TRY(Fetch(agent_, version_, rank).range(base, first.bytes, compare));
    if (same) continue;
    return refusal(
        fmt::format("ranks 0 and {} saved different contents of region '{}', which has "
                    "no place in a global array: declare it with backstay_protect_array",
                    rank, name));
  }
  return {};
}

Status Redistribution::read_all(bool place) {
  const Fetch::Take only_verify = [](std::uint64_t, Bytes) { return Status(); };
  for (const Transfer& transfer : transfers_) {
    BACKSTAY_TRY(Fetch(agent_, version_, transfer.from)
                     .range(transfer.begin, transfer.bytes, place ? transfer.place : only_verify));
  }
  return {};
}

}  // namespace backstay::client
