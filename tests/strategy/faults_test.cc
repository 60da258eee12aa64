// The rule of the fault tests over ranks that write by themselves: a checkpoint that was reported
// comes back, exact; one that was not comes back exact or not at all; all ranks say the same.
#include <fmt/format.h>

#include "io/faulty.h"
#include "io/memory.h"
#include "job.h"
#include "store/catalog.h"
#include "tier/dir.h"

namespace backstay::strategy::test {
namespace {

using io::Fault;
constexpr int ranks = 3;

// A disk in memory that all ranks share; calls of one rank, or of all, may fail.
class Disk {
 public:
  explicit Disk(Job& job) {
    job.open_tier = [this](const Config& config, const std::string& dir,
                           const std::string& writer) -> Result<std::unique_ptr<tier::Tier>> {
      const bool shared = dir == config.durable.dir;
      const bool fails = faults_ != nullptr && shared &&
                         (!of_rank_ || writer.ends_with(fmt::format("-{}", *of_rank_)));
      const auto faults = fails ? faults_ : nullptr;
      io::FileSystem* files = &files_;
      if (faults) {
        const std::lock_guard lock(mutex_);
        files = wrappers_.emplace_back(io::make_faulty_filesystem(files_, faults)).get();
      }
      const auto make_ring = [faults]() -> Result<std::unique_ptr<io::Ring>> {
        auto ring = io::make_memory_ring({.seed = 1});
        if (faults) ring = io::make_faulty_ring(std::move(ring), faults);
        return ring;
      };
      return tier::open_dir_tier(*files, make_ring, {.root = "/versions", .writer = writer});
    };
  }
  // From now on; of all ranks where none is named.
  void fail(std::shared_ptr<io::Faults> faults, std::optional<int> of_rank = {}) {
    faults_ = std::move(faults);
    of_rank_ = of_rank;
  }
  void heal() { faults_ = nullptr; }
  void crash(std::uint64_t seed) { files_.crash(seed); }
  std::vector<store::StoredVersion> versions() {
    const auto tier = tier::open_dir_tier(files_, [] { return io::make_memory_ring({.seed = 1}); },
                                          {.root = "/versions"});
    return store::scan(**tier, "job").value();
  }

 private:
  io::MemoryFileSystem files_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<io::FileSystem>> wrappers_;
  std::shared_ptr<io::Faults> faults_;
  std::optional<int> of_rank_;
};

std::uint64_t calls_of_a_checkpoint(std::optional<int> of_rank) {
  Job job;
  Disk disk(job);
  EXPECT_TRUE(job.save(ranks, 1).ok());
  const auto faults = std::make_shared<io::Faults>();
  disk.fail(faults, of_rank);
  EXPECT_TRUE(job.save(ranks, 2).ok());
  return faults->calls();
}

void expect_whole_or_absent(Job& job, Disk& disk, const Status& saved, const std::string& what) {
  disk.heal();
  const auto back = job.restart(ranks);
  ASSERT_TRUE(back.ok()) << what << ": " << back.error().to_string();
  if (saved.ok()) {
    EXPECT_EQ(*back, 2U) << what;
  } else {
    EXPECT_TRUE(*back == 1U || *back == 2U) << what;
  }
}

TEST(RanksThatWrite, EveryCallOfARankThatFails) {
  for (const int rank : {0, 1}) {
    const std::uint64_t calls = calls_of_a_checkpoint(rank);
    ASSERT_GT(calls, 10U);
    for (const Fault fault : {Fault::io, Fault::no_space, Fault::torn}) {
      for (std::uint64_t at = 1; at <= calls; ++at) {
        Job job;
        Disk disk(job);
        ASSERT_TRUE(job.save(ranks, 1).ok());
        const auto faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
        disk.fail(faults, rank);
        const Status saved = job.save(ranks, 2);
        const std::string what = fmt::format("fault {} of rank {} at {} ({})",
                                             static_cast<int>(fault), rank, at, faults->chosen());
        expect_whole_or_absent(job, disk, saved, what);
        const auto next = disk.versions().back().version + 1;
        ASSERT_TRUE(job.save(ranks, next).ok()) << what;
        EXPECT_EQ(*job.restart(ranks), next) << what;
        for (const auto& stored : disk.versions()) EXPECT_TRUE(stored.good()) << what;
      }
    }
  }
}

TEST(RanksThatWrite, ThePowerThatGoesOffAtEveryCall) {
  const std::uint64_t calls = calls_of_a_checkpoint({});
  for (std::uint64_t at = 1; at <= calls; ++at) {
    for (const Fault fault : {Fault::stop, Fault::stop_midway}) {
      Job job;
      Disk disk(job);
      ASSERT_TRUE(job.save(ranks, 1).ok());
      const auto faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
      disk.fail(faults);
      const Status saved = job.save(ranks, 2);
      disk.crash(at);
      expect_whole_or_absent(job, disk, saved, fmt::format("off at {} ({})", at, faults->chosen()));
    }
  }
}

}  // namespace
}  // namespace backstay::strategy::test
