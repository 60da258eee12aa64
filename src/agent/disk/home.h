// The home thread of one job: reads the captured files of versions on the node's disk and brings
// them to their own paths (docs/protocol/home.md).
//
// It gets one order at a time from the home plan (agent/home) and answers it. The file system of a
// path may hang: nothing else waits for this thread but its own destructor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/disk/home_orders.h"
#include "agent/disk/home_path.h"
#include "agent/disk/version_files.h"
#include "base/clock.h"
#include "base/hold.h"
#include "io/file.h"
#include "tier/tier.h"

namespace backstay::agent {

// What the thread needs of the world. Called in its thread.
struct HomeWorld {
  std::string job;
  // Of the node's disk, where the versions lie. Errors: io, permission.
  std::function<Result<std::unique_ptr<tier::Tier>>()> open_tier;
  io::FileSystem* files = nullptr;  // of the paths
  const Clock* clock = &system_clock();
  std::function<void(HomeAnswer)> answer;
  // The hold of this version (base/hold.h), while its file is brought; none where a program or the
  // collector has it.
  std::function<std::optional<Hold>(HeldVersion)> hold = [](HeldVersion) { return Hold::take(""); };
};

// What the thread does, without the thread: a test may play it step by step. One thread.
class HomeWorker {
 public:
  // `stop`: asked between two pieces of a file; true gives up the order, with code again.
  explicit HomeWorker(
      HomeWorld world, std::function<bool()> stop = [] { return false; });
  void handle(const HomeOrder& order);

  // For DiskThread: an order is carried out at once.
  std::uint64_t wakes_ns() const { return no_deadline; }
  void carry_on(bool) {}
  void finish() {}

 private:
  struct Known {
    format::CommitRecord record;
    NodeId node = 0;
    std::set<std::string> unsynced = {};  // folders with files that were brought
  };
  void handle(const LookAtFiles& order);
  void handle(const BringFile& order);
  void handle(const MarkHome& order);
  Status open(const Known& known);
  Result<FilesFound> look(const Known& known);
  Result<FileBrought> bring(const BringFile& order);
  Status mark(const MarkHome& order, HomeMarked& answer);

  const HomeWorld world_;
  const std::function<bool()> stop_;
  HomePaths paths_;
  std::map<VersionNumber, Known> known_;
  std::unique_ptr<tier::Tier> tier_;
  VersionNumber opened_ = 0;  // whose files are open; 0: of none
  std::unique_ptr<VersionFiles> files_;
};

}  // namespace backstay::agent
