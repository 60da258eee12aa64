// A machine in memory with versions of captured files, made by hand, and an agent's home plan and
// home thread on it, played step by step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/disk/home.h"
#include "agent/home/home_plan.h"
#include "base/checksum.h"
#include "format/manifest.h"
#include "format/names.h"
#include "format/segment.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "tier/dir.h"

namespace backstay::agent::testing {

constexpr std::uint64_t second = 1'000'000'000;
inline const std::string job = "job.files.host";

// A file as a program wrote it.
struct Written {
  std::string path;
  std::string bytes;
  std::uint64_t placed_s = 0;
  std::uint32_t mode = 0640;
  std::uint64_t hole = 0;  // so many zeros behind the bytes, which are never written
  std::uint64_t modified_s() const { return placed_s + 1; }
};

struct Machine {
  Machine();

  // What another program does.
  void put(const std::string& path, const std::string& bytes);
  // "none", or what the file holds.
  std::string at(const std::string& path);
  std::uint64_t now_s() const { return clock.wall_ns() / second; }

  // The power goes, and comes back.
  void crash(std::uint64_t seed);

  ManualClock clock;
  io::MemoryFileSystem files;
  int boots = 1;
};

inline const format::ObjectId files_of_writer(format::OwnerKind::writer, 2,
                                              format::ObjectKind::files);

Buffer object_of(const std::vector<Written>& written);

// Adds the object's chunks to the segment. Returns its manifest.
format::Manifest cut_up(const Buffer& object, VersionNumber version, Buffer& segment,
                        const std::string& of = job);

// One version whose object is that of a writer, in small chunks; it is local.
format::CommitRecord store(Machine& machine, VersionNumber version,
                           const std::vector<Written>& written, const std::string& of = job);

std::string text(std::size_t bytes, char first);

// The file is that one, with everything that belongs to it.
void expect_is(Machine& machine, const Written& written);

std::vector<std::string> names(Machine& machine, const std::string& folder);

// What the version's mark says, sorted: the paths that are not at home; "no mark".
std::vector<std::string> mark_of(Machine& machine, VersionNumber version);
using Names = std::vector<std::string>;

// One life of an agent, as far as it brings files home. Every call to the machine's files is
// counted, and one goes wrong as `plan` says. `at_once_max`: orders that the thread has at a time.
class HomeAgent {
 public:
  explicit HomeAgent(Machine& machine, io::FaultPlan plan = {}, std::size_t at_once_max = 1)
      : machine_(machine),
        at_once_max_(at_once_max),
        faults_(std::make_shared<io::Faults>(plan)),
        files_(io::make_faulty_filesystem(machine.files, faults_)),
        worker_({.job = job,
                 .open_tier = [this] { return tier(); },
                 .files = files_.get(),
                 .clock = &machine.clock,
                 .answer = [this](HomeAnswer one) { thread_answers_.push_back(std::move(one)); },
                 .at_once = run_in_turn,
                 .note = "/disk/placing",
                 .boot = std::to_string(machine.boots)}) {}

  // `before`: the version was there before this agent began.
  void add(const format::CommitRecord& record, bool before = true);

  // All that can be done now. Ends early where the machine has stopped.
  void run();
  // Orders that come together.
  bool step();
  // Also what is paused, as often as that.
  void run_patiently(int pauses = 3);

  // "ok", an error, or "" where it is not answered.
  std::string settled(const std::string& path);

  HomePlan& plan() { return plan_; }
  const io::Faults& faults() const { return *faults_; }
  const std::vector<VersionNumber>& at_home() const { return at_home_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Result<std::unique_ptr<tier::Tier>> tier();
  void take_news();

  Machine& machine_;
  const std::size_t at_once_max_;
  const std::shared_ptr<io::Faults> faults_;
  const std::unique_ptr<io::FileSystem> files_;
  HomePlan plan_;
  HomeWorker worker_;
  std::vector<HomeAnswer> thread_answers_;
  std::uint64_t ticket_ = 0;
  std::map<std::uint64_t, std::string> answers_;
  std::vector<VersionNumber> at_home_;
  std::vector<std::string> warnings_;
};

}  // namespace backstay::agent::testing
