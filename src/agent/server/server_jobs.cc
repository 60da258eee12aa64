// How a process finds its job, and how a job is opened: its lock, its threads, its tiers.
#include <algorithm>
#include <random>

#include "agent/disk/event_log.h"
#include "agent/disk/guarded_tier.h"
#include "agent/disk/job_lock.h"
#include "agent/server/server.h"
#include "agent/server/server_slot.h"
#include "base/clock.h"

namespace backstay::agent {

Status Server::join(ConnectionId id, Connection& connection, const wire::Hello& hello) {
  BACKSTAY_ASSIGN(connection.job, job_for(connection, hello.job, hello.dir));
  return connection.job->hello(id, hello);
}

Status Server::join(ConnectionId id, Connection& connection, const wire::Join& join) {
  BACKSTAY_ASSIGN(connection.job, job_for(connection, join.job, join.dir));
  std::random_device random;
  const RunId run = std::uint64_t{random()} << 32 | random();
  return connection.job->join(id, join, std::max<RunId>(run, 1));
}

Result<Job*> Server::job_for(const Connection& connection, const std::string& job,
                             const std::string& dir) {
  if (connection.job != nullptr || connection.admin) return Error(Code::state, "hello came twice");
  if (draining_) return refusal_while_ending();
  BACKSTAY_TRY(check_job_name(job));
  BACKSTAY_ASSIGN(Slot * slot, open_job(job, dir));
  return slot->job.get();
}

Server::Slot* Server::open_slot(const std::string& job, const std::string& dir) {
  for (auto& [number, slot] : slots_) {
    if (slot->job->name() == job && slot->job->dir() == dir) return slot.get();
  }
  return nullptr;
}

Result<Server::Slot*> Server::open_job(const std::string& job, const std::string& named_dir) {
  if (named_dir.empty() || named_dir.front() != '/') {
    return Error(Code::invalid, "storage.dir must be an absolute path, it is '" + named_dir + "'");
  }
  const std::string dir = normal_path(named_dir);
  if (Slot* open = open_slot(job, dir)) return open;
  auto slot = std::make_unique<Slot>();
  BACKSTAY_ASSIGN(auto page, ControlPage::create());
  const std::uint64_t number = next_slot_++;
  slot->lock = std::make_shared<JobLock>(dir, job, JobLock::Kind::job);
  slot->store = make_store(number, job, dir, slot->lock);
  slot->make_drain = [this, number, job, dir] { return make_drain(number, job, dir); };
  slot->make_home = [this, number, job, dir, raw = slot.get()] {
    return make_home(number, job, dir, raw->lock);
  };
  slot->make_peer_files = [this, number, job, dir, raw = slot.get()] {
    return make_peer_files(number, job, dir, *raw);
  };
  slot->network = options_.make_network;
  slot->traffic_of_all = &traffic_;
  slot->watch_network = [this, number](int descriptor) {
    return watch(descriptor, from_network | number, false, false);
  };
  slot->job =
      std::make_unique<Job>(job, dir, *pool_, *this, *slot, system_clock(), std::move(page));
  slot->job->set_settings(options_.settings, options_.paths != nullptr);
  return (slots_[number] = std::move(slot)).get();
}

std::unique_ptr<Store> Server::make_store(std::uint64_t slot, const std::string& job,
                                          const std::string& dir, const HeldLock& job_lock) {
  return std::make_unique<Store>(
      job,
      [make = options_.make_tier, dir, job, pool = pool_.get(), shared = disk_facts_,
       job_lock]() -> Result<std::unique_ptr<tier::Tier>> {
        BACKSTAY_TRY(job_lock->take());
        BACKSTAY_ASSIGN(auto tier, make(dir, job, *pool, [shared](const DiskFacts& facts) {
                          const std::lock_guard lock(shared->mutex);
                          shared->facts = facts;
                        }));
        return guarded(std::move(tier), job_lock);
      },
      [this, slot, log = EventLog(dir + "/" + job)](Event event) {
        if (auto* scanned = std::get_if<Scanned>(&event))
          scanned->finished = log.last_run_finished();
        events_.put(Posted{slot, std::move(event), false});
      },
      [log = EventLog(dir + "/" + job), job_lock](const std::string& line) {
        if (job_lock->found()) log.append(line);
      });
}

std::unique_ptr<Drain> Server::make_drain(std::uint64_t slot, const std::string& job,
                                          const std::string& dir) {
  DrainWorld world;
  world.local_dir = dir;
  world.open_tier = options_.open_tier;
  world.open_durable = options_.open_shared;
  world.lock = [job](const std::string& durable) { return lock_job(durable, job); };
  world.lock_live = [job](const std::string& durable) { return lock_live(durable, job); };
  world.post_event = [this, slot](Event event) {
    events_.put(Posted{slot, std::move(event), true});
  };
  return std::make_unique<Drain>(job, std::move(world));
}

std::unique_ptr<Home> Server::make_home(std::uint64_t slot, const std::string& job,
                                        const std::string& dir, const HeldLock& lock) {
  HomeWorld world;
  world.job = job;
  world.open_tier = [open = options_.open_tier, dir,
                     lock]() -> Result<std::unique_ptr<tier::Tier>> {
    BACKSTAY_ASSIGN(auto tier, open(dir));
    return guarded(std::move(tier), lock);
  };
  world.files = options_.paths;
  world.answer = [this, slot](HomeAnswer answer) {
    std::visit([&](auto& one) { events_.put(Posted{slot, std::move(one), false}); }, answer);
  };
  return std::make_unique<Home>(std::move(world));
}

// With its buffers.
std::unique_ptr<PeerFileThread> Server::make_peer_files(std::uint64_t slot, const std::string& job,
                                                        const std::string& dir, Slot& of) {
  const std::uint32_t buffers = std::max(options_.staging_buffers, 2u);
  of.serving = std::make_unique<StagingBuffers>(buffers / 2, pool_->buffer_bytes());
  of.keeping = std::make_unique<StagingBuffers>(buffers - buffers / 2, pool_->buffer_bytes());
  return std::make_unique<PeerFileThread>(
      job,
      [open = options_.open_tier, dir, lock = of.lock]() -> Result<std::unique_ptr<tier::Tier>> {
        BACKSTAY_ASSIGN(auto tier, open(dir));
        return guarded(std::move(tier), lock);
      },
      [this, slot](PeerFileEvent event) {
        events_.put(Posted{slot, Scanned{std::vector<StoredVersion>()}, false, std::move(event)});
      });
}

}  // namespace backstay::agent
