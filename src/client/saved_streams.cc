#include "client/saved_streams.h"

#include <algorithm>
#include <cstring>

namespace backstay::client {

Result<const std::vector<format::Stream>*> SavedStreams::of(const Place& place) {
  if (have_ != std::pair(place.version, place.run)) {
    const Status loaded = load(place);
    have_ =
        loaded.ok() ? std::pair(place.version, place.run) : std::pair(VersionNumber{0}, RunId{0});
    BACKSTAY_TRY(loaded);
  }
  return &streams_;
}

// The region of all streams is the first: its payload begins where the object does.
Status SavedStreams::load(const Place& place) {
  streams_.clear();
  by_name_.clear();
  window_.clear();
  Fetch fetch(place.agent, place.version, place.rank, place.run);
  BACKSTAY_ASSIGN(const format::Table table, fetch.table());
  const format::Region* const all = format::find_streams(table);
  if (all == nullptr) return {};
  if (all->bytes < format::streams_trailer_bytes) {
    return Error(Code::corrupt, "the streams are too short to have an index");
  }
  Buffer last(format::streams_trailer_bytes);
  BACKSTAY_TRY(fetch.range(all->bytes - last.size(), last));
  BACKSTAY_ASSIGN(const auto trailer, format::decode_streams_trailer(last, all->bytes));
  Buffer index(trailer.index_bytes);
  BACKSTAY_TRY(fetch.range(trailer.index_offset, index));
  BACKSTAY_ASSIGN(streams_, format::decode_streams(index, trailer));
  bytes_ = trailer.index_offset;
  for (std::size_t i = 0; i < streams_.size(); ++i) by_name_.emplace(streams_[i].name, i);
  return {};
}

const format::Stream* SavedStreams::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &streams_[found->second];
}

Status SavedStreams::read(const Place& place, const format::Stream& stream, std::uint64_t offset,
                          std::span<std::byte> to) {
  for (const format::StreamExtent& extent : stream.extents) {
    if (to.empty()) break;
    if (offset >= extent.bytes) {
      offset -= extent.bytes;
      continue;
    }
    const std::size_t bytes = std::min<std::uint64_t>(to.size(), extent.bytes - offset);
    BACKSTAY_TRY(read_payload(place, extent.offset + offset, to.first(bytes)));
    to = to.subspan(bytes);
    offset = 0;
  }
  return {};
}

Status SavedStreams::read_payload(const Place& place, std::uint64_t offset,
                                  std::span<std::byte> to) {
  while (!to.empty()) {
    if (offset < window_begin_ || offset - window_begin_ >= window_.size()) {
      BACKSTAY_TRY(read_ahead(place, offset));
    }
    const Bytes here = Bytes(window_).subspan(offset - window_begin_);
    const std::size_t bytes = std::min(to.size(), here.size());
    std::memcpy(to.data(), here.data(), bytes);
    to = to.subspan(bytes);
    offset += bytes;
  }
  return {};
}

// What one buffer held when it was saved, where buffers are as large now: one chunk is moved.
Status SavedStreams::read_ahead(const Place& place, std::uint64_t offset) {
  const std::uint64_t each = place.agent.buffer_bytes();
  window_.clear();
  const std::uint64_t begin = offset / each * each;
  Buffer next(std::min(each, bytes_ - begin));
  BACKSTAY_TRY(Fetch(place.agent, place.version, place.rank, place.run).range(begin, next));
  window_begin_ = begin;
  window_ = std::move(next);
  return {};
}

}  // namespace backstay::client
