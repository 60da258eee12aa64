// The input is the end of a region of streams: index and trailer.
#include "format/streams.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& tail) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, tail.data() + tail.size() - format::streams_trailer_bytes + 8, sizeof bytes);
  if (bytes > UINT64_MAX - tail.size()) return;  // no payload is as long
  const auto trailer = format::decode_streams_trailer(
      Bytes(tail).last(format::streams_trailer_bytes), bytes + tail.size());
  if (!trailer.ok()) return;
  FUZZ_PROMISE(trailer->index_offset == bytes);
  const auto streams = format::decode_streams(Bytes(tail).first(trailer->index_bytes), *trailer);
  if (!streams.ok()) return;
  std::uint64_t sum = 0;
  for (const auto& stream : *streams) {
    FUZZ_PROMISE(format::check_region_name(stream.name).ok());
    sum += stream.bytes;
    for (const auto& extent : stream.extents) {
      FUZZ_PROMISE(extent.offset <= bytes && extent.bytes <= bytes - extent.offset);
    }
  }
  FUZZ_PROMISE(sum == bytes);
  FUZZ_PROMISE(format::encode_streams(*streams, bytes) == tail);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < format::streams_trailer_bytes) return 0;
  check(fuzz::input(data, size));
  return 0;
}
