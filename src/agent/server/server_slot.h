// A job as the server holds it: the job's state machine and its store thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "agent/disk/disk_threads.h"
#include "agent/disk/links.h"
#include "agent/disk/store.h"
#include "agent/job/job.h"
#include "agent/server/server.h"
#include "base/folders.h"
#include "store/job_lock.h"

namespace backstay::agent {

inline std::uint64_t seconds_to_ns(double seconds) {
  return static_cast<std::uint64_t>(seconds * 1e9);
}

// What epoll reports of a job's network, with the number of its slot.
inline constexpr std::uint64_t from_network = std::uint64_t{1} << 62;

// Of the tier that was made last; store threads fill it.
struct Server::SharedDiskFacts {
  std::mutex mutex;
  DiskFacts facts;
};

struct Server::Slot final : StoreLink {
  Slot(Server& of, std::uint64_t its_number, std::string its_name, std::string its_dir)
      : server(of), number(its_number), name(std::move(its_name)), dir(std::move(its_dir)) {}
  void post(Command command) override {
    ++posts;
    store->post(std::move(command));
  }
  void post_drain(DrainCommand command) override {
    if (drain == nullptr) drain = server.make_drain(*this);
    ++drain_posts;
    drain->post(std::move(command));
  }
  void post_home(HomeOrders orders) override {
    if (home == nullptr) home = server.make_home(*this);
    home->post(std::move(orders));
  }
  Result<Network> make_network(const MemberId& self, const std::string& secret) override {
    return server.options_.world->make_network(self, secret);
  }
  Status watch(int descriptor) override { return server.watch_network(number, descriptor); }
  DiskTraffic traffic() const override { return server.traffic_; }
  const PeerFileParts* peer_files() override {
    if (!peer_file_parts) {
      peer_file_thread = server.make_peer_files(*this);
      peer_file_parts.emplace(PeerFileParts{*peer_file_thread, *serving, *keeping});
    }
    return &*peer_file_parts;
  }
  // The store has nothing left to do; asks it where that is not known. Ending its thread then does
  // not make the main loop wait for the disk.
  bool settled() {
    if (settled_posts == posts && settled_drain_posts == drain_posts) return true;
    if (asked_posts != posts) store->post(Settle{posts});
    if (asked_drain_posts != drain_posts) drain->post(Command(Settle{drain_posts}));
    asked_posts = posts;
    asked_drain_posts = drain_posts;
    return false;
  }

  Server& server;
  const std::uint64_t number;
  const std::string name;  // of the job
  const std::string dir;
  std::uint64_t posts = 0;          // commands so far
  std::uint64_t asked_posts = 0;    // so many of them when the store was asked last
  std::uint64_t settled_posts = 0;  // so many of them are known to be done
  std::uint64_t drain_posts = 0;    // the same of the drain
  std::uint64_t asked_drain_posts = 0;
  std::uint64_t settled_drain_posts = 0;
  std::uint64_t unused_since_ns = 0;  // 0: in use
  store::HeldLock lock;          // the store takes it; each writer to the job's folder looks at it
  std::unique_ptr<Store> store;  // outlives the job, which posts to it
  std::unique_ptr<Drain> drain;  // made for the first run with a durable directory
  std::unique_ptr<Home> home;    // made for the first captured files
  std::unique_ptr<StagingBuffers>
      serving;  // with the peer file thread, for the first run on several nodes
  std::unique_ptr<StagingBuffers> keeping;
  std::unique_ptr<PeerFileThread> peer_file_thread;
  std::optional<PeerFileParts> peer_file_parts;
  std::unique_ptr<Job> job;
};

}  // namespace backstay::agent
