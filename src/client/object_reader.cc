#include "client/object_reader.h"

#include <cstring>

namespace backstay::client {

namespace {
// The table of some hundred regions, and the footer.
constexpr std::uint64_t tail_bytes_usual = 64 * 1024;
}  // namespace

Result<format::Table> ObjectReader::table() {
  BACKSTAY_ASSIGN(Last tail, last(tail_bytes_usual));
  if (tail.bytes.size() < format::object_footer_bytes) {
    return Error(Code::corrupt, "the object is shorter than its footer");
  }
  BACKSTAY_ASSIGN(const format::Footer footer,
                  format::decode_footer(Bytes(tail.bytes).last(format::object_footer_bytes),
                                        tail.object_bytes));
  const std::uint64_t needed = footer.table_bytes + format::object_footer_bytes;
  if (needed > tail.bytes.size()) {
    BACKSTAY_ASSIGN(tail, last(needed));
  }
  return format::decode_table(Bytes(tail.bytes).last(needed).first(footer.table_bytes), footer);
}

Status ObjectReader::range(std::uint64_t begin, std::span<std::byte> to) {
  return range(begin, to.size(), [to, begin](std::uint64_t offset, Bytes piece) {
    std::memcpy(to.data() + (offset - begin), piece.data(), piece.size());
    return Status();
  });
}

}  // namespace backstay::client
