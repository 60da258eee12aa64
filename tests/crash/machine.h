// A node: a disk in memory that outlives the agents on it, and one agent at a time, played in one
// thread so that a seed replays everything. The disk can fail at a chosen call, stop with the whole
// machine, and lose what was not synced (io/memory.h and io/faulty.h have the fault model).
#pragma once

#include <memory>
#include <string>

#include "../agent/harness.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "tier/dir.h"

namespace backstay::crash {

using agent::testing::JobHarness;

inline const std::string root = "/disk";

class Machine {
 public:
  explicit Machine(std::uint64_t seed) : seed_(seed) {}

  // A new agent on the disk; the earlier one is gone, as by kill -9: what it had handed to the
  // system is done, the rest is not.
  JobHarness& start_agent(io::FaultPlan plan = {}, std::uint32_t buffers = 16) {
    kill_agent();
    faults_ = std::make_shared<io::Faults>(plan);
    faulty_ = io::make_faulty_filesystem(disk_, faults_);
    agent_ = std::make_unique<JobHarness>(
        buffers, [this] { return open_tier(); }, JobHarness::Threads::none);
    return *agent_;
  }
  void kill_agent() { agent_.reset(); }
  // The machine stops: what was not synced may be lost.
  void crash(std::uint64_t seed) {
    kill_agent();
    disk_.crash(seed);
  }

  JobHarness& agent() { return *agent_; }
  io::MemoryFileSystem& disk() { return disk_; }
  bool stopped() const { return faults_->stopped(); }
  bool struck() const { return !faults_->chosen().empty(); }
  std::string struck_at() const { return faults_->chosen(); }
  std::uint64_t calls() const { return faults_->calls(); }

 private:
  Result<std::unique_ptr<tier::Tier>> open_tier() {
    tier::DirOptions options;
    options.root = root;
    options.recycle = true;
    options.spare_folder = "job/.spare";
    options.spare_bytes_min = 4096;  // segments are small here and shall be recycled too
    auto make_ring = [this]() -> Result<std::unique_ptr<io::Ring>> {
      return io::make_faulty_ring(io::make_memory_ring({.depth = 4, .seed = ++seed_}), faults_);
    };
    return tier::open_dir_tier(*faulty_, make_ring, options);
  }

  std::uint64_t seed_;
  io::MemoryFileSystem disk_;
  std::shared_ptr<io::Faults> faults_;
  std::unique_ptr<io::FileSystem> faulty_;
  std::unique_ptr<JobHarness> agent_;
};

}  // namespace backstay::crash
