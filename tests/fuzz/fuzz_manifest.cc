#include <algorithm>

#include "format/manifest.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& bytes) {
  const auto manifest = format::decode_manifest(bytes);
  if (!manifest.ok()) return;
  for (const auto& object : (*manifest).objects) {
    FUZZ_PROMISE((*manifest).find(object.id) == &object);
    std::uint64_t covered = 0;
    for (const auto& chunk : (*manifest).chunks_of(object)) {
      FUZZ_PROMISE(chunk.object_offset == covered);
      FUZZ_PROMISE(chunk.object == object.id);
      FUZZ_PROMISE(chunk.need <= (*manifest).needs.size());
      const std::uint64_t end = chunk.here() ? (*manifest).segment_bytes : ~std::uint64_t{0};
      FUZZ_PROMISE(chunk.segment_offset < end);
      FUZZ_PROMISE(chunk.length <= end - chunk.segment_offset);
      covered += chunk.length;
    }
    FUZZ_PROMISE(covered == object.bytes);
  }
  FUZZ_PROMISE(encode(*manifest) == bytes);
}

// Makes the counts those of the length, cuts what is left over, and seals.
void mend(Buffer& bytes) {
  std::uint32_t needs = 0;
  if (bytes.size() < format::manifest_header_bytes + sizeof(std::uint64_t)) return;
  std::memcpy(&needs, bytes.data() + 176, sizeof needs);
  needs = static_cast<std::uint32_t>(std::min<std::size_t>(needs, format::needs_max));
  const std::size_t fixed =
      format::manifest_header_bytes + sizeof(std::uint64_t) + needs * format::need_bytes;
  if (bytes.size() < fixed) return;
  std::uint32_t objects = 0;
  std::memcpy(&objects, bytes.data() + 40, sizeof objects);
  const std::size_t room = bytes.size() - fixed;
  objects =
      static_cast<std::uint32_t>(std::min<std::size_t>(objects, room / format::object_entry_bytes));
  const std::uint64_t chunks =
      (room - objects * format::object_entry_bytes) / format::chunk_entry_bytes;
  bytes.resize(fixed + objects * format::object_entry_bytes + chunks * format::chunk_entry_bytes);
  test::overwrite(bytes, 40, objects);
  test::overwrite(bytes, 48, chunks);
  test::overwrite(bytes, 176, std::uint64_t{needs});
  test::reseal(bytes, format::manifest_header_bytes - 8);
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
