#include "agent/disk/disk_threads.h"

#include <sys/resource.h>

#include <utility>

#include "base/clock.h"

namespace backstay::agent {

namespace {

void yield_to_programs() {
  constexpr int patience = 10;
  (void)::setpriority(PRIO_PROCESS, 0, patience);
}

}  // namespace

Store::Store(std::string job, MakeTier make_tier, StoreWorker::PostEvent post_event,
             StoreWorker::AppendLine append_event)
    : DiskThread([job = std::move(job), make_tier = std::move(make_tier),
                  post_event = std::move(post_event), append_event = std::move(append_event)] {
        return std::make_unique<StoreInThread>(
            std::make_unique<StoreWorker>(job, make_tier, post_event, append_event));
      }) {}

Drain::Drain(std::string job, DrainWorld world)
    : DiskThread([job = std::move(job), world = std::move(world)] {
        yield_to_programs();
        return std::make_unique<DrainWorker>(job, world, system_clock());
      }) {}

PeerFileThread::PeerFileThread(const std::string& job, const PeerFileWorker::MakeTier& make_tier,
                               const PeerFileWorker::PostEvent& post_event)
    : thread_([job, make_tier, post_event] {
        yield_to_programs();
        return std::make_unique<PeerFileWorker>(job, make_tier, post_event, system_clock());
      }) {}

Home::Home(HomeWorld world)
    : thread_([this, world = std::move(world)] {
        yield_to_programs();
        return std::make_unique<HomeWorker>(world, [this] { return ends_.load(); });
      }) {}

}  // namespace backstay::agent
