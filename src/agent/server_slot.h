// A job as the server holds it: the job's state machine and its store thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "agent/job.h"
#include "agent/server.h"

namespace backstay::agent {

// Of the tier that was made last; store threads fill it.
struct Server::SharedDiskFacts {
  std::mutex mutex;
  DiskFacts facts;
};

struct Server::Slot final : StoreLink {
  void post(Command command) override {
    ++posts;
    store->post(std::move(command));
  }
  void post_drain(DrainCommand command) override {
    if (drain == nullptr) drain = make_drain();
    ++drain_posts;
    drain->post(std::move(command));
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

  std::uint64_t posts = 0;          // commands so far
  std::uint64_t asked_posts = 0;    // so many of them when the store was asked last
  std::uint64_t settled_posts = 0;  // so many of them are known to be done
  std::uint64_t drain_posts = 0;    // the same of the drain
  std::uint64_t asked_drain_posts = 0;
  std::uint64_t settled_drain_posts = 0;
  std::uint64_t unused_since_ns = 0;  // 0: in use
  std::function<std::unique_ptr<Drain>()> make_drain;
  std::unique_ptr<Store> store;  // outlives the job, which posts to it; holds its lock
  std::unique_ptr<Drain> drain;  // made for the first run with a durable directory
  std::unique_ptr<Job> job;
};

}  // namespace backstay::agent
