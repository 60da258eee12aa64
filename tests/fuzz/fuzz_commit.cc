#include "format/manifest.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& bytes) {
  const auto record = format::decode_commit(bytes);
  if (!record.ok()) return;
  FUZZ_PROMISE(check_job_name((*record).job).ok());
  FUZZ_PROMISE(encode(*record) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Buffer bytes = fuzz::input(data, size);
  check(bytes);
  bytes.resize(format::commit_record_bytes);
  test::reseal(bytes, bytes.size() - 8);
  check(bytes);
  return 0;
}
