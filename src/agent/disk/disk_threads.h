// The threads of a job that block: for this node's disk, for shared storage, for the files of other
// agents, and for the paths of captured files.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "agent/disk/disk_thread.h"
#include "agent/disk/drain.h"
#include "agent/disk/home.h"
#include "agent/disk/peer_files.h"
#include "agent/disk/store.h"

namespace backstay::agent {

// The store's worker as its thread has it: does together what comes together.
class StoreInThread final {
 public:
  explicit StoreInThread(std::unique_ptr<StoreWorker> worker) : worker_(std::move(worker)) {}
  void handle(Command command) { worker_->take(std::move(command)); }
  std::uint64_t wakes_ns() const { return worker_->wakes_ns(); }
  void carry_on(bool wait) { worker_->carry_on(wait); }
  void finish() { worker_->finish(); }

 private:
  const std::unique_ptr<StoreWorker> worker_;
};

class Store final : public DiskThread<StoreInThread, Command> {
 public:
  using MakeTier = StoreWorker::MakeTier;
  // All three are called in the store's thread; the tier is that thread's and its helpers'.
  Store(std::string job, MakeTier make_tier, StoreWorker::PostEvent post_event,
        StoreWorker::AppendLine append_event = {});
};

class Drain final : public DiskThread<DrainWorker, DrainCommand> {
 public:
  Drain(std::string job, DrainWorld world);
};

class PeerFileThread final : public PeerFileLink {
 public:
  // Both functions are called in the peer file thread.
  PeerFileThread(const std::string& job, const PeerFileWorker::MakeTier& make_tier,
                 const PeerFileWorker::PostEvent& post_event);

  void post(PeerFileCommand command) override { thread_.post(std::move(command)); }

 private:
  DiskThread<PeerFileWorker, PeerFileCommand> thread_;
};

class Home final {
 public:
  explicit Home(HomeWorld world);
  // Gives up the file that is under way between two pieces, and what was posted after it.
  ~Home() { ends_ = true; }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  void post(HomeOrders orders) { thread_.post(std::move(orders)); }

 private:
  std::atomic<bool> ends_ = false;
  DiskThread<HomeWorker, HomeOrders> thread_;
};

}  // namespace backstay::agent
