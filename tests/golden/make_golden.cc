// Writes the golden versions of the current format: make_golden tests/golden/v2
#include <filesystem>
#include <fstream>

#include "golden/captured.h"
#include "golden/golden.h"

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  auto files = backstay::test::golden_files();
  files.merge(backstay::test::golden_captured_files());
  files.merge(backstay::test::golden_stream_files());
  for (const auto& [name, bytes] : files) {
    const auto path = std::filesystem::path(argv[1]) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return 1;
  }
  return 0;
}
