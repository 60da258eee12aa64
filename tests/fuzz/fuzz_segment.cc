// The input is the beginning of the header: the rest are zeros, so that the mutations meet fields.
#include "format/segment.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& bytes) {
  const auto header = format::decode_segment_header(bytes);
  if (!header.ok()) return;
  FUZZ_PROMISE(check_job_name((*header).job).ok());
  FUZZ_PROMISE(encode(*header) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Buffer bytes = fuzz::input(data, size);
  check(bytes);
  bytes.resize(format::segment_header_bytes);
  check(bytes);
  test::reseal(bytes, 152);
  check(bytes);
  return 0;
}
