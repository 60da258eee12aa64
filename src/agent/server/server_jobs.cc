// How a process finds its job, and how a job is opened: its lock, its threads, its tiers.
#include <algorithm>
#include <random>

#include "agent/server/server.h"
#include "agent/server/server_slot.h"
#include "base/clock.h"
#include "base/folders.h"
#include "base/hold.h"
#include "base/machine.h"
#include "store/event_log.h"
#include "store/guarded_tier.h"
#include "store/job_lock.h"

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
    if (slot->job->name() == job && slot->job->state().dir == dir) return slot.get();
  }
  return nullptr;
}

Result<Server::Slot*> Server::open_job(const std::string& job, const std::string& named_dir) {
  if (named_dir.empty() || named_dir.front() != '/') {
    return Error(Code::invalid, "storage.dir must be an absolute path, it is '" + named_dir + "'");
  }
  const std::string dir = normal_path(named_dir);
  if (Slot* open = open_slot(job, dir)) return open;
  BACKSTAY_ASSIGN(auto page, ControlPage::create());
  const std::uint64_t number = next_slot_++;
  auto slot = std::make_unique<Slot>(*this, number, job, dir);
  slot->lock = std::make_shared<store::JobLock>(dir, job, store::JobLock::Kind::job);
  slot->store = make_store(*slot);
  slot->job =
      std::make_unique<Job>(job, dir, *pool_, *this, *slot, system_clock(), std::move(page));
  slot->job->set_settings(options_.settings, options_.paths != nullptr);
  return (slots_[number] = std::move(slot)).get();
}

Status Server::watch_network(std::uint64_t slot, int descriptor) {
  return watch(descriptor, from_network | slot, false, false);
}

std::unique_ptr<Store> Server::make_store(const Slot& slot) {
  const std::string folder = slot.dir + "/" + slot.name;
  return std::make_unique<Store>(
      slot.name,
      [world = options_.world, dir = slot.dir, job = slot.name, pool = pool_.get(),
       shared = disk_facts_, lock = slot.lock]() -> Result<std::unique_ptr<tier::Tier>> {
        BACKSTAY_TRY(lock->take());
        BACKSTAY_ASSIGN(auto tier,
                        world->make_tier(dir, job, *pool, [shared](const DiskFacts& facts) {
                          const std::lock_guard guard(shared->mutex);
                          shared->facts = facts;
                        }));
        return store::guarded(std::move(tier), lock);
      },
      [this, number = slot.number, log = store::EventLog(folder)](Event event) {
        if (auto* scanned = std::get_if<Scanned>(&event))
          scanned->finished = log.last_run_finished();
        events_.put(Posted{number, std::move(event), false});
      },
      [log = store::EventLog(folder), lock = slot.lock](const std::string& line) {
        if (lock->found()) log.append(line);
      });
}

std::unique_ptr<Drain> Server::make_drain(const Slot& slot) {
  const std::string& job = slot.name;
  DrainWorld world;
  world.local_dir = slot.dir;
  world.open_tier = [all = options_.world](const std::string& dir) { return all->open_tier(dir); };
  world.open_durable = [all = options_.world](const std::string& dir) {
    return all->open_shared(dir);
  };
  world.lock = [job](const std::string& durable) { return store::lock_job(durable, job); };
  world.lock_live = [job](const std::string& durable) { return store::lock_live(durable, job); };
  world.post_event = [this, number = slot.number](Event event) {
    events_.put(Posted{number, std::move(event), true});
  };
  return std::make_unique<Drain>(job, std::move(world));
}

namespace {

// The node's disk, as long as the job's lock is there.
auto opens_guarded(ServerWorld* world, const std::string& dir, const store::HeldLock& lock) {
  return [world, dir, lock]() -> Result<std::unique_ptr<tier::Tier>> {
    BACKSTAY_ASSIGN(auto tier, world->open_tier(dir));
    return store::guarded(std::move(tier), lock);
  };
}

}  // namespace

std::unique_ptr<Home> Server::make_home(const Slot& slot) {
  HomeWorld world;
  world.job = slot.name;
  world.open_tier = opens_guarded(options_.world, slot.dir, slot.lock);
  world.files = options_.paths;
  world.hold = [folder = parent_of(options_.socket_path), job = slot.name](HeldVersion version) {
    return Hold::take(hold_path(folder, job, version));
  };
  world.answer = [this, number = slot.number](HomeAnswer answer) {
    std::visit([&](auto& one) { events_.put(Posted{number, std::move(one), false}); }, answer);
  };
  world.note = slot.dir + "/" + slot.name + "/placing";
  world.boot = boot_id();
  return std::make_unique<Home>(std::move(world));
}

// With its buffers.
std::unique_ptr<PeerFileThread> Server::make_peer_files(Slot& slot) {
  const std::uint32_t buffers = std::max(options_.staging_buffers, 2u);
  slot.serving = std::make_unique<StagingBuffers>(buffers / 2, pool_->buffer_bytes());
  slot.keeping = std::make_unique<StagingBuffers>(buffers - buffers / 2, pool_->buffer_bytes());
  return std::make_unique<PeerFileThread>(
      slot.name, opens_guarded(options_.world, slot.dir, slot.lock),
      [this, number = slot.number](PeerFileEvent event) {
        events_.put(Posted{number, Scanned{std::vector<StoredVersion>()}, false, std::move(event)});
      });
}

}  // namespace backstay::agent
