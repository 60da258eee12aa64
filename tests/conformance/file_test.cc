#include <unistd.h>

#include "file_conformance.h"
#include "io/faulty.h"

namespace backstay::testing {
namespace {

FileSystemUnderTest posix_in(const std::string& above, bool direct) {
  struct Parts {
    explicit Parts(const std::string& folder, bool with_direct)
        : directory(folder), fs(io::make_posix_filesystem({with_direct})) {}
    TempDirectory directory;
    std::unique_ptr<io::FileSystem> fs;
  };
  auto parts = std::make_shared<Parts>(above, direct);
  return {parts->fs.get(), parts->directory.path(), parts};
}

FileSystemUnderTest memory(bool direct) { return memory_files({.direct = direct}); }

// The wrapper passes everything through, except that the call `at` comes in two parts.
FileSystemUnderTest faulty(FileSystemUnderTest inner, io::FaultPlan plan) {
  auto fs = std::shared_ptr<io::FileSystem>(
      io::make_faulty_filesystem(*inner.fs, std::make_shared<io::Faults>(plan)));
  auto both =
      std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(inner.keep, fs);
  return {fs.get(), inner.root, both};
}

std::vector<FileCase> file_cases() {
  std::vector<FileCase> all = {
      {"Posix", [] { return posix_in(::testing::TempDir(), true); }},
      {"PosixBuffered", [] { return posix_in(::testing::TempDir(), false); }},
      {"Memory", [] { return memory(true); }},
      {"MemoryBuffered", [] { return memory(false); }},
      {"FaultyOnPosix", [] { return faulty(posix_in(::testing::TempDir(), true), {}); }},
      {"FaultyOnMemory", [] { return faulty(memory(true), {}); }},
  };
  for (std::uint64_t at = 1; at <= 5; ++at) {
    const std::string number = std::to_string(at);
    all.push_back({"ShortTransferAtCall" + number, [at] {
                     return faulty(memory(true), {io::Fault::short_transfer, at});
                   }});
    all.push_back({"InterruptedAtCall" + number, [at] {
                     return faulty(memory(true), {io::Fault::interrupted, at});
                   }});
  }
  if (::access("/dev/shm", W_OK) == 0) {
    all.push_back({"PosixOnTmpfs", [] { return posix_in("/dev/shm", true); }});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FileConformance, ::testing::ValuesIn(file_cases()), case_name);

}  // namespace
}  // namespace backstay::testing
