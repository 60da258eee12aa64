// The home thread of one job: reads the captured files of versions on the node's disk and brings
// them to their own paths (docs/protocol/home.md).
//
// It gets orders from the home plan (agent/home) and answers them. Those that come together have
// their syncs together: a file system with a journal then commits once for all of them. The file
// system of a path may hang: nothing else waits for this thread but its own destructor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/disk/home_orders.h"
#include "base/at_once.h"
#include "base/clock.h"
#include "base/hold.h"
#include "io/file.h"
#include "store/home/home_path.h"
#include "store/home/placing_note.h"
#include "store/home/version_files.h"
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
  std::function<void(const Pieces&)> at_once = run_at_once;  // the syncs
  // Of the placing note (placing_note.h): its path, and which start of the machine this is.
  std::string note = {};
  std::string boot = {};
};

// What the thread does, without the thread: a test may play it step by step. One thread.
class HomeWorker {
 public:
  // `stop`: asked between two pieces of a file; true gives up the order, with code again.
  explicit HomeWorker(
      HomeWorld world, std::function<bool()> stop = [] { return false; });
  void handle(const HomeOrders& orders);

  // For DiskThread: orders are carried out at once.
  std::uint64_t wakes_ns() const { return no_deadline; }
  void carry_on(bool) {}
  void finish() {}

 private:
  struct Known {
    format::CommitRecord record;
    NodeId node = 0;
    bool before = false;  // this agent
    // Folders with files that were brought. True: this thread has put all of them there.
    std::map<std::string, bool> unsynced = {};
  };
  struct OnItsWay {
    const BringFile* order = nullptr;
    std::optional<Hold> hold = {};
    store::HomeFile file = {};  // `how` is `held` where another process has the hold
  };
  void look(const LookAtFiles& order);
  Status open_tier();
  void close() {  // the next order opens the tier and the version again
    files_.reset();
    opened_ = 0;
    tier_.reset();
  }
  Status open(const Known& known);
  Result<FilesFound> found_in(Known& known);
  void find_placed(Known& known, FilesFound& found);
  void remove_left(const std::string& to);
  void bring(const std::vector<const BringFile*>& orders);
  OnItsWay begin(const BringFile& order);
  Result<store::HomeFile> written(const BringFile& order, const Known& known);
  FileBrought end(OnItsWay& one);
  FileBrought bring_to_path(OnItsWay& one);
  store::PlacingNote::File noted(const BringFile& order, const Known& known) const;
  void mark(const std::vector<const MarkHome*>& orders);
  std::map<std::string, Status> sync_folders(const std::vector<const MarkHome*>& orders);
  Status write_mark(const MarkHome& order) const;

  const HomeWorld world_;
  const std::function<bool()> stop_;
  store::HomePaths paths_;
  store::PlacingNote note_;
  std::map<VersionNumber, Known> known_;
  std::unique_ptr<tier::Tier> tier_;  // null after an error
  VersionNumber opened_ = 0;          // whose files are open; 0: of none
  std::unique_ptr<store::VersionFiles> files_;
};

}  // namespace backstay::agent
