#include "file_system_under_test.h"
#include "io/faulty.h"
#include "tier/dir.h"
#include "tier/memory.h"
#include "tier_conformance.h"

namespace backstay::testing {
namespace {

TierUnderTest directory(FileSystemUnderTest files, tier::MakeRing make_ring, bool recycle,
                        const std::string& spare_folder = ".spare",
                        const std::string& writer = "") {
  tier::DirOptions options;
  options.root = files.root + "/tier";
  options.recycle = recycle;
  options.spare_folder = spare_folder;
  options.writer = writer;
  auto opened = tier::open_dir_tier(*files.fs, std::move(make_ring), options);
  EXPECT_TRUE(is_ok(opened));
  return {files.keep, opened.ok() ? std::move(opened).value() : nullptr};
}

tier::MakeRing system_ring(bool allow_io_uring) {
  return [=] { return io::make_ring({.depth = 4, .allow_io_uring = allow_io_uring}, nullptr); };
}

tier::MakeRing memory_ring(std::uint64_t seed) {
  return [=]() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring({.depth = 4, .seed = seed});
  };
}

// Everything through the wrappers; call `at` is done in two parts.
TierUnderTest faulty(std::uint64_t at) {
  auto files = memory_files();
  auto faults = std::make_shared<io::Faults>(io::FaultPlan{io::Fault::short_transfer, at});
  auto fs = std::shared_ptr<io::FileSystem>(io::make_faulty_filesystem(*files.fs, faults));
  auto both =
      std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(files.keep, fs);
  const auto make_ring = [=]() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_faulty_ring(io::make_memory_ring({.depth = 4}), faults);
  };
  return directory({fs.get(), "", both}, make_ring, true);
}

std::vector<TierCase> tier_cases() {
  std::vector<TierCase> all = {
      {"Memory",
       [] {
         return TierUnderTest{nullptr, tier::make_memory_tier()};
       }},
      {"Directory", [] { return directory(posix_files(), system_ring(true), false); }},
      {"DirectoryRecycling", [] { return directory(posix_files(), system_ring(true), true); }},
      {"DirectorySparesInTheJob",
       [] { return directory(posix_files(), system_ring(true), true, "job/.spare"); }},
      {"DirectoryThreads", [] { return directory(posix_files(), system_ring(false), true); }},
      {"DirectoryOfSeveralWriters",
       [] { return directory(posix_files(), system_ring(true), false, ".spare", "one"); }},
      {"DirectoryInMemory", [] { return directory(memory_files(), memory_ring(1), false); }},
      {"DirectoryInMemoryRecycling",
       [] { return directory(memory_files(), memory_ring(2), true); }},
  };
  for (const std::uint64_t at : {0, 3, 5, 8, 13, 21, 34}) {
    all.push_back({"FaultyShortAtCall" + std::to_string(at), [at] { return faulty(at); }});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, TierConformance, ::testing::ValuesIn(tier_cases()), tier_case_name);

}  // namespace
}  // namespace backstay::testing
