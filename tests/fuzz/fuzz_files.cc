// The input is the end of an object of kind files: table and footer.
#include <algorithm>

#include "format/extent_map.h"
#include "format/files.h"
#include "fuzz/fuzz.h"

namespace {

using namespace backstay;

// What is read of a file covers it, and lies in the payload.
void check_plan(const format::CapturedFile& file, std::uint64_t payload_end) {
  const format::ExtentMap map(file.extents);
  std::uint64_t at = 0;
  for (const auto& piece : map.read(0, file.bytes)) {
    FUZZ_PROMISE(piece.file_offset == at && piece.bytes > 0);
    at += piece.bytes;
    if (!piece.object_offset) continue;
    FUZZ_PROMISE(*piece.object_offset <= payload_end &&
                 piece.bytes <= payload_end - *piece.object_offset);
  }
  FUZZ_PROMISE(at == file.bytes);
  const auto joined = map.extents();
  FUZZ_PROMISE(format::ExtentMap(joined).read(0, file.bytes) == map.read(0, file.bytes));
}

void check(const Buffer& tail) {
  const std::size_t table_bytes = tail.size() - format::object_footer_bytes;
  std::uint64_t table_offset = 0;
  std::memcpy(&table_offset, tail.data() + table_bytes + 16, sizeof table_offset);
  const Bytes last = Bytes(tail).subspan(table_bytes);
  const auto footer =
      format::decode_footer(last, table_offset + tail.size(), format::ObjectKind::files);
  if (!footer.ok()) return;
  FUZZ_PROMISE((*footer).table_offset == table_offset);
  const auto files = format::decode_files(Bytes(tail).first(table_bytes), *footer);
  if (!files.ok()) return;
  for (const auto& file : *files) {
    FUZZ_PROMISE(format::check_file_path(file.path).ok());
    check_plan(file, table_offset);
  }
  FUZZ_PROMISE(format::encode_files(*files, table_offset) == tail);
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
