// The input is the end of an image: table and footer.
#include "capture/image/format/image.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& tail) {
  const std::size_t table_bytes = tail.size() - image::footer_bytes;
  std::uint64_t table_offset = 0;
  std::memcpy(&table_offset, tail.data() + table_bytes + 16, sizeof table_offset);
  const Bytes last = Bytes(tail).subspan(table_bytes);
  const auto footer = image::decode_footer(last, table_offset + tail.size());
  if (!footer.ok()) return;
  const auto found = image::decode_table(Bytes(tail).first(table_bytes), *footer);
  if (!found.ok()) return;
  std::uint64_t end = 0;
  for (const auto& run : found->runs) {
    FUZZ_PROMISE(run.offset == end && run.offset < table_offset);
    end += run.pages * image::page_bytes;
  }
  FUZZ_PROMISE(end == table_offset);
  for (const auto& file : found->files) FUZZ_PROMISE(file.path < found->texts.size());
  FUZZ_PROMISE(image::encode_tail(*found, table_offset) == tail);
}

void mend(Buffer& tail) {
  const std::size_t table_bytes = tail.size() - image::footer_bytes;
  test::overwrite(tail, table_bytes + 24, std::uint64_t{table_bytes});
  test::overwrite(tail, table_bytes + 32, checksum(Bytes(tail).first(table_bytes)));
  test::reseal(tail, tail.size() - 8, table_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < backstay::image::footer_bytes) return 0;
  Buffer tail = fuzz::input(data, size);
  check(tail);
  mend(tail);
  check(tail);
  return 0;
}
