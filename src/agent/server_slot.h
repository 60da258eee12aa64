// A job as the server holds it: the job's state machine, its store thread, and its lock.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/job.h"
#include "agent/server.h"

namespace backstay::agent {

// Shared with the store's thread, which fills it once.
struct SharedDiskFacts {
  std::mutex mutex;
  DiskFacts facts;
};

struct Server::Slot final : StoreLink {
  void post(Command command) override { store->post(std::move(command)); }

  std::shared_ptr<SharedDiskFacts> facts = std::make_shared<SharedDiskFacts>();
  Fd lock;
  std::unique_ptr<Store> store;  // outlives the job, which posts to it
  std::unique_ptr<Job> job;
};

}  // namespace backstay::agent
