#include "format/parity_manifest.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& bytes) {
  const auto parity = format::decode_parity_manifest(bytes);
  if (!parity.ok()) return;
  FUZZ_PROMISE((*parity).parity >= 1 && (*parity).parity <= format::parity_blocks_max);
  FUZZ_PROMISE((*parity).manifests.size() == (*parity).data + (*parity).parity);
  FUZZ_PROMISE((*parity).checksums.size() == (*parity).parity * (*parity).checksums_of_block());
  const auto members = format::decode_members(*parity);
  FUZZ_PROMISE(!members.ok() || (*members).size() == (*parity).manifests.size());
  FUZZ_PROMISE(encode(*parity) == bytes);
}

// Makes the checksums right.
void mend(Buffer& bytes) {
  if (bytes.size() < format::parity_header_bytes + sizeof(std::uint64_t)) return;
  test::reseal(bytes, format::parity_header_bytes - 8);
  test::reseal(bytes, bytes.size() - 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Buffer bytes = fuzz::input(data, size);
  check(bytes);
  mend(bytes);
  check(bytes);
  return 0;
}
