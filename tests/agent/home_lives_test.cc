// Whole lives of agents that bring captured files home, with whatever can go wrong at any time.
#include <fmt/format.h>

#include <set>

#include "home_world.h"
#include "support/seed.h"

namespace backstay::agent {
namespace {

using namespace testing;

// Versions come, calls fail, agents are killed, the machine stops, programs remove files, versions
// that are at home are removed: what was settled is there, and in the end the newest of each path.
class RandomLife {
 public:
  explicit RandomLife(std::uint64_t seed) : random_(seed) {
    EXPECT_TRUE(machine_.files.make_directories("/x").ok());
    EXPECT_TRUE(machine_.files.sync_directory("/").ok());
    begin_life();
  }
  void live() {
    for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) act();
    begin_life(/*faulty=*/false);
    agent_->run_patiently(20);
    for (const auto& [path, written] : newest_) expect_is(machine_, written);
    for (const std::string& path : removed_) EXPECT_TRUE(machine_.at(path) == "none") << path;
    if (mark_misread_) return;
    for (const auto& [number, record] : stored_) EXPECT_EQ(mark_of(machine_, number), Names{});
    EXPECT_EQ(agent_->plan().counts().versions, 0U);
  }

 private:
  void begin_life(bool faulty = true) {
    const io::Fault faults[] = {io::Fault::none,       io::Fault::io,   io::Fault::no_space,
                                io::Fault::permission, io::Fault::torn, io::Fault::stop,
                                io::Fault::flip};
    io::FaultPlan plan{faults[random_.between(0, 6)], random_.between(1, 120)};
    // A mark that was not read right counts as none: its files come again, and are kept where a
    // newer one stands whose version is gone.
    const std::string failed = agent_ ? agent_->faults().chosen() : "";
    mark_misread_ = mark_misread_ || failed.find(".home") != std::string::npos;
    // Where calls fail, a file that was removed may come back.
    const bool fails = plan.fault != io::Fault::none && plan.fault != io::Fault::stop;
    calls_fail_ = faulty && fails;
    if (calls_fail_) removed_.clear();
    only_killed_ = only_killed_ && !calls_fail_;
    machine_.clock.advance(second);
    agent_ = std::make_unique<HomeAgent>(machine_, faulty ? plan : io::FaultPlan{},
                                         random_.between(1, 8));
    for (const auto& [number, record] : stored_) agent_->add(record);
  }
  void act() {
    machine_.clock.advance(random_.between(1, 2 * second));
    switch (random_.between(0, 10)) {
      case 0:
      case 1:
      case 2: write(); break;
      case 3: settle(); break;
      case 4: begin_life(); break;
      case 5: stop(); break;
      case 6: retain(); break;
      case 7: remove(); break;
      default:
        for (std::uint64_t n = random_.between(1, 6); n > 0 && !agent_->faults().stopped(); --n) {
          agent_->step();
        }
    }
    if (!agent_->faults().stopped()) return;
    if (random_.coin()) remove();
    if (random_.coin()) return begin_life();  // the agent was killed
    stop();
  }
  void write() {
    std::vector<Written> all;
    for (const std::string path : {"/w/a", "/w/b", "/x/a"}) {
      if (random_.coin()) continue;
      machine_.clock.advance(2 * second);
      const auto first = static_cast<char>('a' + random_.between(0, 3));
      all.push_back({.path = path,
                     .bytes = text(random_.between(0, 9000), first),
                     .placed_s = machine_.now_s() - 1,
                     .hole = random_.coin() ? 0 : random_.between(1, 9000)});
      newest_[path] = all.back();
      settled_.erase(path);
      removed_.erase(path);
    }
    if (all.empty()) return;
    const VersionNumber number = ++last_;
    stored_[number] = store(machine_, number, all);
    agent_->add(stored_[number], /*before=*/false);
  }
  // A program removes what is at its place.
  void remove() {
    // Notes are of one boot, and of calls that succeed: then agents that are killed know what was
    // brought before. All is brought once after anything else.
    if (!only_killed_ && (calls_fail_ || agent_->settled("") != "ok")) return;
    only_killed_ = true;
    for (auto at = newest_.begin(); at != newest_.end();) {
      const auto& [path, written] = *at;
      const bool there = machine_.at(path) == written.bytes + std::string(written.hole, '\0');
      if (!there || random_.coin()) {
        ++at;
        continue;
      }
      EXPECT_TRUE(machine_.files.remove(path).ok());
      removed_.insert(path);
      settled_.erase(path);
      at = newest_.erase(at);
    }
  }
  void settle() {
    for (const auto& [path, written] : newest_) {
      if (agent_->settled(path) == "ok" && !agent_->faults().stopped()) settled_.insert(path);
    }
  }
  void stop() {
    machine_.crash(random_.between(0, 1'000'000));
    removed_.clear();
    only_killed_ = false;
    begin_life();
    for (const std::string& path : settled_) expect_is(machine_, newest_[path]);
  }
  void retain() {
    agent_->run();
    for (const VersionNumber number : agent_->at_home()) {
      if (stored_.erase(number) == 0) continue;
      const std::string folder = "/disk/" + format::version_folder(job, number);
      EXPECT_TRUE(io::remove_tree(machine_.files, folder).ok());
      agent_->plan().gone(number);
    }
  }

  test::Random random_;
  Machine machine_;
  std::unique_ptr<HomeAgent> agent_;
  VersionNumber last_ = 0;
  std::map<VersionNumber, format::CommitRecord> stored_;
  std::map<std::string, Written> newest_;
  std::set<std::string> settled_;
  std::set<std::string> removed_;  // and are not to come back
  bool calls_fail_ = false;
  bool mark_misread_ = false;
  bool only_killed_ = true;  // since all that was brought had its mark
};

TEST(HomeLives, NothingIsLostAndNothingComesBack) {
  for (std::uint64_t i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE(test::replay() + fmt::format(", life {}", i));
    RandomLife(test::seed() + i).live();
  }
}

}  // namespace
}  // namespace backstay::agent
