// The input is the end of an object: table and footer.
#include "format/object.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

void check(const Buffer& tail) {
  const std::size_t table_bytes = tail.size() - format::object_footer_bytes;
  std::uint64_t table_offset = 0;
  std::memcpy(&table_offset, tail.data() + table_bytes + 16, sizeof table_offset);
  const Bytes last = Bytes(tail).subspan(table_bytes);
  const auto footer = format::decode_footer(last, table_offset + tail.size());
  if (!footer.ok()) return;
  FUZZ_PROMISE((*footer).table_offset == table_offset);
  const auto table = format::decode_table(Bytes(tail).first(table_bytes), *footer);
  if (!table.ok()) return;
  for (const auto& region : table->regions) {
    FUZZ_PROMISE(region.offset <= table_offset && region.bytes <= table_offset - region.offset);
    FUZZ_PROMISE(format::check_region_name(region.name).ok());
  }
  for (const auto& note : table->notes) {
    FUZZ_PROMISE(format::check_region_name(note.key).ok());
    FUZZ_PROMISE(format::check_region_name(note.text).ok());
  }
  auto again = table->regions;
  FUZZ_PROMISE(format::lay_out(again) == table_offset);
  FUZZ_PROMISE(format::encode_tail(again, table_offset, table->notes) == tail);
}

void mend(Buffer& tail) {
  const std::size_t table_bytes = tail.size() - format::object_footer_bytes;
  test::overwrite(tail, table_bytes + 24, std::uint64_t{table_bytes});
  test::overwrite(tail, table_bytes + 32, checksum(Bytes(tail).first(table_bytes)));
  test::reseal(tail, tail.size() - 8, table_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < format::object_footer_bytes) return 0;
  Buffer tail = fuzz::input(data, size);
  check(tail);
  mend(tail);
  check(tail);
  return 0;
}
