// The machine stops at every call of the tier, before it or in the middle of it, and loses what was
// not synced. The rule: what was reported is there and whole; what has a commit record is whole.
//
// A failure prints the call and the seed; both together replay it.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "version_store.h"

namespace backstay::testing {
namespace {

constexpr std::uint64_t seed_count = 200;

struct Machine {
  io::MemoryFileSystem fs;
  std::shared_ptr<io::Faults> faults;
  std::unique_ptr<io::FileSystem> faulty;

  explicit Machine(io::FaultPlan plan)
      : faults(std::make_shared<io::Faults>(plan)),
        faulty(io::make_faulty_filesystem(fs, faults)) {}
  std::string where(std::uint64_t seed) const {
    return "stopped at call " + std::to_string(faults->calls()) + " " + faults->chosen() +
           ", seed " + std::to_string(seed);
  }
};

// Runs `life` on a machine that stops at each call in turn, for all seeds, then `check` on what
// the crash left. Ends with the first call that was never reached.
void at_every_call(const std::function<void(Machine&, std::uint64_t seed)>& life,
                   const std::function<void(Machine&, std::uint64_t seed)>& check) {
  for (const io::Fault fault : {io::Fault::stop, io::Fault::stop_midway}) {
    for (std::uint64_t at = 1;; ++at) {
      ASSERT_LT(at, 1'000u) << "the life of the machine never ends";
      bool reached = false;
      // All seeds for all calls would take minutes; each call gets its share, none gets none.
      const std::uint64_t step = 17;
      for (std::uint64_t seed = at % step; seed < seed_count; seed += step) {
        Machine machine({fault, at});
        life(machine, seed);
        reached = machine.faults->stopped();
        machine.fs.crash(seed);
        check(machine, seed);
        if (::testing::Test::HasFailure()) return;
      }
      if (!reached) break;
    }
  }
}

TEST(DirTierCrash, WhatWasPutIsNeverLost) {
  for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
    io::MemoryFileSystem fs;
    {
      auto tier = open_tier(fs, false);
      ASSERT_TRUE(is_ok((*tier)->put("job/v1/commit.local", pattern(9'000, 1))));
    }
    fs.crash(seed);
    auto tier = open_tier(fs, false);
    const auto back = (*tier)->get("job/v1/commit.local", 9'000);
    ASSERT_TRUE(is_ok(back)) << "seed " << seed;
    ASSERT_EQ(*back, pattern(9'000, 1)) << "seed " << seed;
  }
}

TEST(DirTierCrash, AFolderThatCameBackIsSafeToo) {
  for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
    io::MemoryFileSystem fs;
    {
      auto tier = open_tier(fs, false);
      ASSERT_TRUE(is_ok((*tier)->put("job/v1/x", pattern(10, 1))));
      ASSERT_TRUE(is_ok((*tier)->remove("job")));
      ASSERT_TRUE(is_ok((*tier)->put("job/v1/x", pattern(10, 2))));
    }
    fs.crash(seed);
    auto tier = open_tier(fs, false);
    const auto back = (*tier)->get("job/v1/x", 10);
    ASSERT_TRUE(is_ok(back)) << "seed " << seed;
    ASSERT_EQ(*back, pattern(10, 2)) << "seed " << seed;
  }
}

TEST(DirTierCrash, WhatWasSealedAndSyncedIsNeverLost) {
  for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
    io::MemoryFileSystem fs;
    {
      auto tier = open_tier(fs, false);
      ASSERT_TRUE(is_ok(write_segment(**tier, 1)));
      ASSERT_TRUE(is_ok((*tier)->sync(folder_of(1))));
    }
    fs.crash(seed);
    auto tier = open_tier(fs, false);
    const auto back = (*tier)->get(folder_of(1) + "/seg", segment_bytes);
    ASSERT_TRUE(is_ok(back)) << "seed " << seed;
    ASSERT_EQ(first_difference(*back, 1), segment_bytes) << "seed " << seed;
  }
}

// An agent writes its own part of a version and its copies for others by two tiers, and one of them
// removes the folder.
TEST(DirTierCrash, AFolderThatAnotherTierRemovedIsMadeSafeAgain) {
  using Write = Status (*)(tier::Tier&);
  const Write put = [](tier::Tier& tier) { return tier.put("job/v1/x", pattern(10, 1)); };
  const Write seal = [](tier::Tier& tier) -> Status {
    BACKSTAY_TRY(write_segment(tier, 1));
    return tier.sync(folder_of(1));
  };
  for (const bool share : {true, false}) {  // false: the tiers of two processes
    for (const auto& [write, name] : {std::pair(put, "job/v1/x"), std::pair(seal, "job/v1/seg")}) {
      for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
        io::MemoryFileSystem fs;
        const auto folders = share ? std::make_shared<tier::SafeFolders>() : nullptr;
        auto one = open_tier(fs, false, nullptr, folders);
        auto other = open_tier(fs, false, nullptr, folders);
        ASSERT_TRUE(is_ok(write(**one)));
        ASSERT_TRUE(is_ok((*other)->remove("job/v1")));
        if (share) {  // it makes the folder again, and has not yet synced it
          ASSERT_TRUE(is_ok((*other)->create("job/v1/part", 4096)));
        }
        ASSERT_TRUE(is_ok(write(**one)));
        fs.crash(seed);
        ASSERT_TRUE(is_ok((*open_tier(fs, false))->get(name, segment_bytes)))
            << name << ", seed " << seed;
      }
    }
  }
}

TEST(DirTierCrash, WhatWasRemovedStaysAway) {
  for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
    io::MemoryFileSystem fs;
    {
      auto tier = open_tier(fs, true);
      ASSERT_TRUE(is_ok(commit_version(**tier, 1)));
      ASSERT_TRUE(is_ok((*tier)->put("job/x", pattern(10, 1))));
      ASSERT_TRUE(is_ok((*tier)->remove(folder_of(1))));
      ASSERT_TRUE(is_ok((*tier)->remove("job/x")));
    }
    fs.crash(seed);
    auto tier = open_tier(fs, false);
    ASSERT_TRUE((*tier)->list("job")->empty()) << "seed " << seed;
  }
}

TEST(DirTierCrash, PutIsOldOrNewOrMissingButNeverTorn) {
  bool first = false;
  bool second = false;
  std::set<std::string> seen;
  at_every_call(
      [&](Machine& machine, std::uint64_t seed) {
        first = second = false;
        auto tier = open_tier(*machine.faulty, false, seed, machine.faults);
        if (!tier.ok()) return;
        first = (*tier)->put("job/v1/x", pattern(9'000, 1)).ok();
        second = (*tier)->put("job/v1/x", pattern(9'000, 2)).ok();
      },
      [&](Machine& machine, std::uint64_t seed) {
        auto tier = open_tier(machine.fs, false);
        const auto bytes = (*tier)->get("job/v1/x", 9'000);
        const bool old = bytes.ok() && *bytes == pattern(9'000, 1);
        const bool fresh = bytes.ok() && *bytes == pattern(9'000, 2);
        const bool missing = !bytes.ok() && bytes.error().code() == Code::not_found;
        seen.insert(old ? "old" : fresh ? "new" : "missing");
        ASSERT_TRUE(old || fresh || missing) << "torn, " << machine.where(seed);
        if (second) {
          ASSERT_TRUE(fresh) << "lost, " << machine.where(seed);
        } else if (first) {
          ASSERT_TRUE(old || fresh) << "lost, " << machine.where(seed);
        }
      });
  EXPECT_EQ(seen, (std::set<std::string>{"missing", "new", "old"}));
}

// Versions come and go, segments are recycled. After the crash a second process removes the garbage
// and goes on, with recycling, and then there is a second crash.
class Lives {
 public:
  explicit Lives(bool recycle) : recycle_(recycle) {}

  void first(Machine& machine, std::uint64_t seed) {
    reported_.clear();
    auto tier = open_tier(*machine.faulty, recycle_, seed, machine.faults);
    if (!tier.ok()) return;
    for (std::uint64_t version = 1; version <= 4; ++version) {
      if (!commit(**tier, version)) return;
      if (version >= 2 && !remove(**tier, version - 1)) return;
    }
  }

  void second(Machine& machine, std::uint64_t seed) {
    check(machine.fs, machine.where(seed));
    {
      auto tier = open_tier(machine.fs, recycle_, seed);
      ASSERT_TRUE(is_ok(tier));
      remove_garbage(**tier);
      check(machine.fs, "garbage removed, " + machine.where(seed));
      ASSERT_TRUE(commit(**tier, 11)) << machine.where(seed);
      ASSERT_TRUE(commit(**tier, 12)) << machine.where(seed);
    }
    check(machine.fs, "two more versions, " + machine.where(seed));
    machine.fs.crash(seed + 1);
    check(machine.fs, "two more versions and a crash, " + machine.where(seed));
  }

 private:
  bool commit(tier::Tier& tier, std::uint64_t version) {
    const bool done = commit_version(tier, version).ok();
    if (done) reported_.insert(version);
    return done;
  }
  bool remove(tier::Tier& tier, std::uint64_t version) {
    reported_.erase(version);
    return tier.remove(folder_of(version)).ok();
  }
  static void remove_garbage(tier::Tier& tier) {
    for (std::uint64_t version = 1; version <= 4; ++version) {
      std::string why;
      if (is_committed(tier, version, &why)) continue;
      ASSERT_TRUE(is_ok(tier.remove(folder_of(version))));
    }
  }
  void check(io::FileSystem& fs, const std::string& when) {
    auto tier = open_tier(fs, false);
    for (const std::uint64_t version : {1, 2, 3, 4, 11, 12}) {
      std::string why;
      const bool there = is_committed(**tier, version, &why);
      ASSERT_EQ(why, "") << when;
      ASSERT_TRUE(there || !reported_.contains(version)) << folder_of(version) << " lost, " << when;
    }
  }

  const bool recycle_;
  std::set<std::uint64_t> reported_;
};

TEST(DirTierCrash, ReportedVersionsSurvive) {
  Lives lives(false);
  at_every_call([&](auto& machine, auto seed) { lives.first(machine, seed); },
                [&](auto& machine, auto seed) { lives.second(machine, seed); });
}

TEST(DirTierCrash, ReportedVersionsSurviveRecycling) {
  Lives lives(true);
  at_every_call([&](auto& machine, auto seed) { lives.first(machine, seed); },
                [&](auto& machine, auto seed) { lives.second(machine, seed); });
}

TEST(DirTierCrash, ARemovedVersionIsWholeOrHasNoCommitRecord) {
  bool removed = false;
  at_every_call(
      [&](Machine& machine, std::uint64_t seed) {
        auto clean = open_tier(machine.fs, false);
        ASSERT_TRUE(is_ok(commit_version(**clean, 1)));
        auto tier = open_tier(*machine.faulty, true, seed, machine.faults);
        removed = tier.ok() && (*tier)->remove("job").ok();
      },
      [&](Machine& machine, std::uint64_t seed) {
        auto tier = open_tier(machine.fs, false);
        std::string why;
        const bool there = is_committed(**tier, 1, &why);
        ASSERT_EQ(why, "") << machine.where(seed);
        ASSERT_FALSE(removed && there) << "it came back, " << machine.where(seed);
      });
}

}  // namespace
}  // namespace backstay::testing
