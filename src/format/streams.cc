#include "format/streams.h"

#include <algorithm>
#include <unordered_set>

#include "format/layout.h"

namespace backstay::format {

namespace {

constexpr layout::Magic streams_magic = layout::magic("BKSTSTR1");
constexpr std::string_view what = "index of streams";
constexpr std::uint64_t extent_bytes = 8 + 8;

struct Trailer {
  layout::Magic magic;
  std::uint64_t index_offset;
  std::uint32_t streams;
  std::array<std::byte, 4> zeros;
};
static_assert(sizeof(Trailer) == streams_trailer_bytes);

Error wrong_stream(const Stream& stream, std::string_view why) {
  return layout::damaged(what, "stream '" + stream.name + "': " + std::string(why));
}

Status get_extents(ByteReader& in, std::uint32_t count, std::uint64_t payload_end, Stream& stream) {
  if (count > in.left() / extent_bytes) return wrong_stream(stream, "number of extents");
  std::uint64_t bytes = 0;
  std::uint64_t behind = 0;  // where the one before ends; no extent ends at 0
  for (std::uint32_t i = 0; i < count; ++i) {
    StreamExtent extent;
    extent.offset = in.get<std::uint64_t>();
    extent.bytes = in.get<std::uint64_t>();
    if (extent.bytes == 0 || extent.offset > payload_end ||
        extent.bytes > payload_end - extent.offset) {
      return wrong_stream(stream, "an extent without bytes, or behind the end of the bytes");
    }
    if (i > 0 && extent.offset <= behind) {
      return wrong_stream(stream, "an extent that does not lie behind the one before it");
    }
    behind = extent.offset + extent.bytes;
    bytes += extent.bytes;  // they do not overlap, so the sum is at most payload_end
    stream.extents.push_back(extent);
  }
  if (bytes != stream.bytes) return wrong_stream(stream, "its length is not that of its extents");
  return {};
}

Result<Stream> get_stream(ByteReader& in, std::uint64_t payload_end) {
  Stream stream;
  stream.name = in.get_text();
  const auto extents = in.get<std::uint32_t>();
  stream.bytes = in.get<std::uint64_t>();
  if (!in.ok()) return layout::damaged(what, "ends inside of a record");
  if (!check_region_name(stream.name).ok()) return layout::damaged(what, "a name is not valid");
  BACKSTAY_TRY(get_extents(in, extents, payload_end, stream));
  return stream;
}

Status check_cover(const std::vector<Stream>& streams, std::uint64_t payload_end) {
  std::vector<StreamExtent> all;
  for (const Stream& stream : streams) {
    all.insert(all.end(), stream.extents.begin(), stream.extents.end());
  }
  std::ranges::sort(all, {}, &StreamExtent::offset);
  std::uint64_t next = 0;
  for (const StreamExtent& extent : all) {
    if (extent.offset != next) return layout::damaged(what, "extents overlap, or leave a gap");
    next += extent.bytes;
  }
  if (next != payload_end) return layout::damaged(what, "extents do not cover the bytes");
  return {};
}

}  // namespace

void Stream::append(std::uint64_t offset, std::uint64_t count) {
  if (!extents.empty() && extents.back().offset + extents.back().bytes == offset) {
    extents.back().bytes += count;
  } else {
    extents.push_back({offset, count});
  }
  bytes += count;
}

Buffer encode_streams(const std::vector<Stream>& streams, std::uint64_t bytes) {
  ByteWriter out;
  for (const Stream& stream : streams) {
    out.put_text(stream.name);
    out.put(static_cast<std::uint32_t>(stream.extents.size()));
    out.put(stream.bytes);
    for (const StreamExtent& extent : stream.extents) {
      out.put(extent.offset);
      out.put(extent.bytes);
    }
  }
  out.put_bytes(layout::bytes_of(
      Trailer{streams_magic, bytes, static_cast<std::uint32_t>(streams.size()), {}}));
  return out.take();
}

Result<StreamsTrailer> decode_streams_trailer(Bytes last, std::uint64_t payload_bytes) {
  if (last.size() != streams_trailer_bytes || payload_bytes < streams_trailer_bytes) {
    return layout::damaged(what, "the region is too short to have one");
  }
  const auto trailer = layout::read<Trailer>(last);
  if (trailer.magic != streams_magic || !layout::all_zero(trailer.zeros)) {
    return layout::damaged(what, "the trailer is not one");
  }
  const std::uint64_t end = payload_bytes - streams_trailer_bytes;
  if (trailer.index_offset > end || trailer.streams == 0 || trailer.streams > streams_max) {
    return layout::damaged(what, "its place, or the number of streams");
  }
  return StreamsTrailer{trailer.index_offset, end - trailer.index_offset, trailer.streams};
}

Result<std::vector<Stream>> decode_streams(Bytes index, const StreamsTrailer& trailer) {
  if (index.size() != trailer.index_bytes) return layout::damaged(what, "its length");
  std::vector<Stream> streams;
  ByteReader in(index);
  for (std::uint32_t i = 0; i < trailer.streams; ++i) {
    BACKSTAY_ASSIGN(Stream stream, get_stream(in, trailer.index_offset));
    streams.push_back(std::move(stream));
  }
  if (!in.done()) return layout::damaged(what, "is longer than its records");
  BACKSTAY_TRY(check_cover(streams, trailer.index_offset));
  std::unordered_set<std::string_view> seen;
  for (const Stream& stream : streams) {
    if (!seen.insert(stream.name).second) return wrong_stream(stream, "its name occurs twice");
  }
  return streams;
}

Region streams_region(std::uint64_t payload_bytes) {
  Region region;
  region.name = streams_region_name;
  region.kind = RegionKind::streams;
  region.bytes = payload_bytes;
  region.shape = {payload_bytes};
  return region;
}

const Region* find_streams(const Table& table) {
  const bool first = !table.regions.empty() && table.regions.front().kind == RegionKind::streams;
  return first ? &table.regions.front() : nullptr;
}

}  // namespace backstay::format
