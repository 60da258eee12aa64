// image_mend FILE AT BIT: changes a byte of an image's table as another machine would have written it,
// and makes the checksums good. For tests of what a restart refuses.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "capture/image/format/image.h"
#include "support/damage.h"

int main(int argc, char** argv) {
  using namespace backstay;
  if (argc != 4) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> raw(std::istreambuf_iterator<char>(in), {});
  Buffer bytes(raw.size());
  std::memcpy(bytes.data(), raw.data(), raw.size());
  const std::size_t footer = bytes.size() - image::footer_bytes;
  const auto found = image::decode_footer(Bytes(bytes).subspan(footer), bytes.size());
  if (!found.ok()) return 1;
  const std::size_t table = found->table_offset;
  bytes[table + sizeof(image::SectionHeader) + std::strtoul(argv[2], nullptr, 10)] |=
      static_cast<std::byte>(std::strtoul(argv[3], nullptr, 10));
  test::overwrite(bytes, footer + 32, checksum(Bytes(bytes).subspan(table, found->table_bytes)));
  test::reseal(bytes, bytes.size() - 8, footer);
  std::ofstream(argv[1], std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  return 0;
}
