// image_mend FILE AT BIT: sets a bit of an image's identity as another machine would have written
// it, and makes the checksums good. image_mend FILE vdso: as if another kernel's vdso had been
// saved.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "capture/image/format/image.h"
#include "support/damage.h"

namespace {

using namespace backstay;

Buffer read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> raw(std::istreambuf_iterator<char>(in), {});
  Buffer bytes(raw.size());
  std::memcpy(bytes.data(), raw.data(), raw.size());
  return bytes;
}

// Where the first byte of the saved vdso lies in the object; 0 where there is none.
std::size_t vdso_offset(const image::Image& found) {
  for (const image::Area& area : found.areas) {
    if (area.kind != static_cast<std::uint32_t>(image::AreaKind::vdso)) continue;
    for (const image::Run& run : found.runs) {
      if (run.address == area.start) return run.offset;
    }
  }
  return 0;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): a file that cannot be read ends the test.
int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Buffer bytes = read_file(argv[1]);
  const std::size_t footer = bytes.size() - image::footer_bytes;
  const auto found = image::decode_footer(Bytes(bytes).subspan(footer), bytes.size());
  if (!found.ok()) return 1;
  const std::size_t table = found->table_offset;
  const Bytes tables = Bytes(bytes).subspan(table, found->table_bytes);
  if (argc == 3) {  // vdso: a byte of its ELF header that means nothing
    const auto whole = image::decode_table(tables, *found);
    if (!whole.ok()) std::fprintf(stderr, "%s\n", whole.error().to_string().c_str());
    if (!whole.ok() || vdso_offset(*whole) == 0) return 1;
    bytes[vdso_offset(*whole) + 15] ^= std::byte{1};
  } else {
    bytes[table + sizeof(image::SectionHeader) + std::strtoul(argv[2], nullptr, 10)] |=
        static_cast<std::byte>(std::strtoul(argv[3], nullptr, 10));
    test::overwrite(bytes, footer + 32, checksum(tables));
    test::reseal(bytes, bytes.size() - 8, footer);
  }
  std::ofstream(argv[1], std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  return 0;
}
