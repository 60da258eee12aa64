#include "client/targets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/folders.h"

namespace backstay::client {

// --- Scatter -------------------------------------------------------------------------------------

void Scatter::add(std::uint64_t offset, std::uint64_t bytes, const Place& place) {
  if (bytes > 0) parts_[offset] = {bytes, place};
}

std::vector<Scatter::Piece> Scatter::pieces(std::uint64_t object_offset,
                                            std::size_t chunk_bytes) const {
  std::vector<Piece> found;
  auto part = parts_.upper_bound(object_offset);
  if (part != parts_.begin()) --part;
  for (std::size_t at = 0; at < chunk_bytes; at += found.back().bytes) {
    const std::uint64_t here = object_offset + at;
    const std::uint64_t left = chunk_bytes - at;
    while (part != parts_.end() && part->first + part->second.bytes <= here) ++part;
    const std::uint64_t begin = part == parts_.end() ? UINT64_MAX : part->first;
    if (here < begin) {
      found.push_back({nullptr, 0, at, std::min(left, begin - here)});
    } else {
      const std::uint64_t inside = here - begin;
      found.push_back(
          {&part->second.place, inside, at, std::min(left, part->second.bytes - inside)});
    }
  }
  return found;
}

Status Scatter::place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) const {
  for (const Piece& piece : pieces(object_offset, chunk.size())) {
    const Bytes bytes = chunk.subspan(piece.at, piece.bytes);
    if (piece.place != nullptr) {
      BACKSTAY_TRY(copy_out(*piece.place, piece.inside, bytes, sum));
    } else if (sum != nullptr) {
      sum->update(bytes);
    }
  }
  return {};
}

bool Scatter::exchange(std::uint64_t object_offset, std::span<std::byte> chunk) const {
  const std::vector<Piece> all = pieces(object_offset, chunk.size());
  const auto exchangeable = [](const Piece& piece) {
    return piece.place == nullptr || piece.place->in_host_memory();
  };
  if (!std::all_of(all.begin(), all.end(), exchangeable)) return false;
  for (const Piece& piece : all) {
    if (piece.place == nullptr) continue;
    client::exchange(*piece.place, piece.inside, chunk.subspan(piece.at, piece.bytes));
  }
  return true;
}

// --- SessionTarget -------------------------------------------------------------------------------

namespace {

Status compare(const format::Region& saved, const format::Region& present) {
  const bool same_place =
      saved.global_shape.empty() || present.global_shape.empty() ||
      (saved.global_shape == present.global_shape && saved.global_offset == present.global_offset);
  if (saved.type == present.type && saved.shape == present.shape && same_place) return {};
  return Error(
      Code::mismatch,
      fmt::format("region '{}' was saved as {} and is protected as {}: protect it as it was "
                  "saved, start under another job name, or start afresh with "
                  "`backstay run --fresh`",
                  saved.name, shape_text(saved), shape_text(present)));
}

}  // namespace

std::uint64_t SessionTarget::table_bytes() const {
  std::vector<format::Region> regions;
  for (const auto& [age, region] : regions_.all()) regions.push_back(region.description);
  return format::encode_tail(regions, format::lay_out(regions)).size();
}

Status SessionTarget::match(const format::Table& table) {
  BACKSTAY_TRY(origin_.check(table));
  const auto& saved = table.regions;
  scatter_.clear();
  saved_files_.clear();
  std::size_t arrays = 0;
  for (const format::Region& region : saved) {
    if (region.kind == format::RegionKind::streams) continue;  // the program reads them by itself
    if (region.kind == format::RegionKind::file) {
      BACKSTAY_TRY(check_file_name(region.name));
      saved_files_.push_back(region);
      continue;
    }
    ++arrays;
    const ProtectedRegion* present = regions_.find(region.name);
    if (present == nullptr) {
      return Error(
          Code::mismatch,
          fmt::format("region '{}' ({}) was saved and is not protected now: protect it "
                      "before backstay_restart, or start afresh with `backstay run --fresh`",
                      region.name, shape_text(region)));
    }
    BACKSTAY_TRY(compare(region, present->description));
    scatter_.add(region.offset, region.bytes, {present->data, present->on_device, -1});
  }
  if (arrays == regions_.all().size()) return open_files();
  for (const auto& [age, region] : regions_.all()) {
    const auto same = [&name = region.description.name](const format::Region& other) {
      return other.kind == format::RegionKind::array && other.name == name;
    };
    if (std::any_of(saved.begin(), saved.end(), same)) continue;
    return Error(Code::mismatch,
                 fmt::format("region '{}' ({}) is protected and was not saved: protect it after "
                             "backstay_restart, start under another job name, or start afresh with "
                             "`backstay run --fresh`",
                             region.description.name, shape_text(region.description)));
  }
  return Error(Code::internal, "regions were counted wrongly");
}

// Opened before the first byte is delivered, so that a folder without permission costs nothing.
Status SessionTarget::open_files() {
  open_.clear();
  if (saved_files_.empty()) return {};
  if (files_.folder().empty()) {
    return Error(
        Code::unsupported,
        fmt::format("the version holds the file '{}', and only an agent brings files back: "
                    "set strategy.name to \"agent\"",
                    saved_files_.front().name));
  }
  BACKSTAY_TRY(make_folders(files_.folder()));
  for (const format::Region& region : saved_files_) {
    BACKSTAY_ASSIGN(ReturningFile file, ReturningFile::create(files_.path_of(region.name),
                                                              region.bytes, region.file_mode));
    scatter_.add(region.offset, region.bytes, {nullptr, false, file.descriptor()});
    open_.push_back(std::move(file));
  }
  return {};
}

Status SessionTarget::place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) {
  return scatter_.place(object_offset, chunk, sum);
}

bool SessionTarget::exchange(std::uint64_t object_offset, std::span<std::byte> chunk) {
  return scatter_.exchange(object_offset, chunk);
}

Status SessionTarget::finish() {
  for (ReturningFile& file : open_) BACKSTAY_TRY(file.publish());
  return {};
}

}  // namespace backstay::client
