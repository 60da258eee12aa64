#include "client/snapshot.h"

#include <algorithm>
#include <cstring>

#include "client/device_memory.h"

namespace backstay::client {

namespace {
constexpr std::uint64_t joined_bytes_max = std::uint64_t{64} << 10;
}

Result<Snapshot> Snapshot::of(const Regions& regions, const RoutedFiles& files,
                              const std::vector<format::Note>& notes, const Streams& streams) {
  Snapshot snapshot;
  if (streams.any()) snapshot.add_streams(streams);
  for (const auto& [age, region] : regions.all()) {
    snapshot.regions_.push_back(region.description);
    snapshot.places_.push_back({region.data, region.on_device, -1});
    if (region.on_device) BACKSTAY_TRY(DeviceMemory::find()->finish_work(region.data));
  }
  BACKSTAY_TRY(snapshot.add_files(files));
  snapshot.table_offset_ = format::lay_out(snapshot.regions_);
  snapshot.tail_ = format::encode_tail(snapshot.regions_, snapshot.table_offset_, notes);
  return snapshot;
}

std::vector<std::uint64_t> Snapshot::field_bytes() const {
  std::vector<std::uint64_t> fields;
  const auto add = [&](std::uint64_t bytes) {
    const bool joins = !fields.empty() && fields.back() + bytes <= joined_bytes_max;
    joins ? fields.back() += bytes : fields.emplace_back(bytes);
  };
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    add((i + 1 < regions_.size() ? regions_[i + 1].offset : table_offset_) - regions_[i].offset);
  }
  add(tail_.size());
  return fields;
}

void Snapshot::add_streams(const Streams& streams) {
  at_ = streams_bytes_ = streams.bytes();
  streams_index_ = streams.index();
  regions_.push_back(format::streams_region(streams_bytes_ + streams_index_.size()));
  places_.push_back({});
}

Status Snapshot::add_files(const RoutedFiles& files) {
  for (const std::string& name : files.names()) {
    BACKSTAY_ASSIGN(OpenFile file, open_routed(files.path_of(name)));
    format::Region region;
    region.name = name;
    region.kind = format::RegionKind::file;
    region.file_mode = file.mode;
    region.bytes = file.bytes;
    region.shape = {file.bytes};
    regions_.push_back(std::move(region));
    places_.push_back({nullptr, false, file.fd.get()});
    files_.push_back(std::move(file));
  }
  return {};
}

Result<std::uint64_t> Snapshot::read_next(std::span<std::byte> to) {
  if (to.size() > object_bytes() - at_) {
    return Error(Code::internal, "more bytes asked for than the object has");
  }
  sum_->reset();
  while (!to.empty()) {
    BACKSTAY_ASSIGN(const std::size_t bytes, read_piece(to));
    at_ += bytes;
    to = to.subspan(bytes);
  }
  return sum_->digest();
}

// One region's payload, the zeros behind it, or the tail: as much of it as fits. May be nothing.
Result<std::size_t> Snapshot::read_piece(std::span<std::byte> to) {
  const auto fitting = [&](std::uint64_t left) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, to.size()));
  };
  if (region_ == regions_.size()) {
    const std::uint64_t inside = at_ - table_offset_;
    const std::size_t bytes = fitting(tail_.size() - inside);
    std::memcpy(to.data(), tail_.data() + inside, bytes);
    sum_->update(to.first(bytes));
    return bytes;
  }
  const format::Region& region = regions_[region_];
  const std::uint64_t inside = at_ - region.offset;
  if (inside < region.bytes) {
    const std::size_t bytes = fitting(region.bytes - inside);
    if (region.kind == format::RegionKind::streams) {
      std::memcpy(to.data(), streams_index_.data() + (inside - streams_bytes_), bytes);
      sum_->update(to.first(bytes));
      return bytes;
    }
    BACKSTAY_TRY(copy_in(places_[region_], inside, to.first(bytes), *sum_));
    return bytes;
  }
  const std::uint64_t next =
      region_ + 1 < regions_.size() ? regions_[region_ + 1].offset : table_offset_;
  const std::size_t bytes = fitting(next - at_);
  std::memset(to.data(), 0, bytes);
  sum_->update(to.first(bytes));
  if (at_ + bytes == next) ++region_;
  return bytes;
}

}  // namespace backstay::client
