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
    job.elements = 20'000;
    job.open_tier = [this](const Config& config, const std::string& dir,
                           const std::string& writer) -> Result<std::unique_ptr<tier::Tier>> {
      const int rank = std::stoi("0" + writer.substr(writer.rfind('-') + 1));
      const auto faults = dir == config.durable.dir ? faults_of(rank) : nullptr;
      const auto make_ring = [faults]() -> Result<std::unique_ptr<io::Ring>> {
        auto ring = io::make_memory_ring({.seed = 1});
        if (faults) ring = io::make_faulty_ring(std::move(ring), faults);
        return ring;
      };
      return tier::open_dir_tier(files_of(rank), make_ring,
                                 {.root = "/versions", .writer = writer});
    };
    job.prepare = [this, shared = job.shared()](ThreadTransport& transport) {
      transport.files = [this](int rank) -> io::FileSystem& { return files_of(rank); };
      transport.path_of = [shared](const std::string& path) {
        return "/versions" + path.substr(shared.size());
      };
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
  std::shared_ptr<io::Faults> faults_of(int rank) const {
    return !of_rank_ || *of_rank_ == rank ? faults_ : nullptr;
  }
  io::FileSystem& files_of(int rank) {
    const auto faults = faults_of(rank);
    if (!faults) return files_;
    const std::lock_guard lock(mutex_);
    return *wrappers_.emplace_back(io::make_faulty_filesystem(files_, faults));
  }

  io::MemoryFileSystem files_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<io::FileSystem>> wrappers_;
  std::shared_ptr<io::Faults> faults_;
  std::optional<int> of_rank_;
};

class RanksThatWrite : public testing::TestWithParam<const char*> {
 protected:
  // Version 1 is there; the second is taken with `plan`. Who failed says so.
  struct Trial {
    explicit Trial(const char* way) : job(way), disk(job) { EXPECT_TRUE(job.save(ranks, 1).ok()); }
    void take(io::FaultPlan plan, std::optional<int> of_rank) {
      faults = std::make_shared<io::Faults>(plan);
      disk.fail(faults, of_rank);
      saved = job.save(ranks, 2);
      disk.heal();
    }
    void expect_whole_or_absent(const std::string& what) {
      const auto back = job.restart(ranks);
      ASSERT_TRUE(back.ok()) << what << ": " << back.error().to_string();
      EXPECT_TRUE(*back == 2U || (!saved.ok() && *back == 1U)) << what << ": " << *back;
    }
    Job job;
    Disk disk;
    std::shared_ptr<io::Faults> faults;
    Status saved;
  };
  std::uint64_t calls_of_a_checkpoint(std::optional<int> of_rank) {
    Trial trial(GetParam());
    trial.take({}, of_rank);
    EXPECT_TRUE(trial.saved.ok());
    return trial.faults->calls();
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, RanksThatWrite, testing::ValuesIn(ways));

TEST_P(RanksThatWrite, FailAlikeAtEveryCallOfOneOfThem) {
  for (const int rank : {0, 1}) {
    const std::uint64_t calls = calls_of_a_checkpoint(rank);
    for (const Fault fault : {Fault::io, Fault::no_space, Fault::torn}) {
      for (std::uint64_t at = 1; at <= calls; ++at) {
        Trial trial(GetParam());
        trial.take({fault, at}, rank);
        const std::string what =
            fmt::format("fault {} of rank {} at {} ({})", static_cast<int>(fault), rank, at,
                        trial.faults->chosen());
        trial.expect_whole_or_absent(what);
        const auto next = trial.disk.versions().back().version + 1;
        ASSERT_TRUE(trial.job.save(ranks, next).ok()) << what;
        EXPECT_EQ(*trial.job.restart(ranks), next) << what;
        for (const auto& stored : trial.disk.versions()) EXPECT_TRUE(stored.good()) << what;
      }
    }
  }
}

// There are fewer buffers than the ring takes requests, and a request may end only once the writer
// waits for it.
TEST_P(RanksThatWrite, WaitForBuffersThatAreOnTheirWay) {
  Job job(GetParam());
  Disk disk(job);
  job.piece_mib = 4;
  job.elements = 4'200'001;
  ASSERT_TRUE(job.save(ranks, 1).ok());
  EXPECT_EQ(*job.restart(ranks), 1U);
}

TEST_P(RanksThatWrite, LoseNothingWhereThePowerGoesOff) {
  const std::uint64_t calls = calls_of_a_checkpoint({});
  for (std::uint64_t at = 1; at <= calls; ++at) {
    for (const Fault fault : {Fault::stop, Fault::stop_midway}) {
      Trial trial(GetParam());
      trial.take({fault, at}, {});
      trial.disk.crash(at);
      trial.expect_whole_or_absent(fmt::format("off at {} ({})", at, trial.faults->chosen()));
    }
  }
}

}  // namespace
}  // namespace backstay::strategy::test
