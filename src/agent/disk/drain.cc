#include "agent/disk/drain.h"

#include "base/log.h"
#include "store/guarded_tier.h"

namespace backstay::agent {

DrainCommand::DrainCommand() = default;
DrainCommand::DrainCommand(const DrainCommand& other) = default;
DrainCommand::DrainCommand(DrainCommand&& other) noexcept = default;
DrainCommand& DrainCommand::operator=(const DrainCommand& other) = default;
DrainCommand& DrainCommand::operator=(DrainCommand&& other) noexcept = default;
DrainCommand::~DrainCommand() = default;

DrainWorker::DrainWorker(std::string job, DrainWorld world, const Clock& clock)
    : job_(std::move(job)),
      world_(std::move(world)),
      clock_(clock),
      live_(world_.lock_live),
      parts_(job_, world_, live_, clock_) {}

void DrainWorker::handle(DrainCommand command) {
  std::visit([this](auto& one) { handle(one); }, command);
}

bool DrainWorker::busy() const { return reads() || (parts_.busy() && !stands_still_); }

std::uint64_t DrainWorker::rests_until_ns() const {
  if (reads()) return 0;
  return parts_.busy() ? parts_.rests_until_ns() : 0;
}

void DrainWorker::step() {
  if (reads()) return store_->reap(/*wait=*/true);
  if (stands_still_) return;
  if (parts_.busy()) parts_.step();
}

void DrainWorker::handle(Command& command) {
  if (store_) return store_->handle(std::move(command));
  // Nothing was opened: nothing is under way.
  if (const auto* settle = std::get_if<Settle>(&command))
    world_.post_event(Settled{settle->ticket});
}

void DrainWorker::handle(OpenDurable& command) {
  while (reads()) store_->reap(/*wait=*/true);
  if (dir_ != command.dir) {  // of a run that is over
    parts_.handle(StopPart{});
    parts_.handle(EndCopy{});
  }
  live_.set(false);
  dir_ = command.dir;
  open_store();
}

void DrainWorker::open_store() {
  store_ = std::make_unique<StoreWorker>(
      job_, [this] { return world_.open_durable(dir_); }, world_.post_event, nullptr);
  store_->handle(ScanJob{.clean = false});
}

// A directory that was missing when the run began, as it was not mounted yet, may be there now.
void DrainWorker::handle(Reopen&) {
  if (store_ && !store_->has_tier()) open_store();
}

void DrainWorker::tell(const format::CommitRecord& record,
                       const std::vector<VersionNumber>& expired) {
  if (!store_->has_tier()) open_store();
  world_.post_event(VersionDurable{StoredVersion{record.version, record.level, record}});
  if (!expired.empty()) store_->handle(RemoveVersions{expired});
}

void DrainWorker::handle(CommitCopy& command) {
  parts_.handle(command,
                [&](const format::CommitRecord& record) { tell(record, command.expired); });
}

}  // namespace backstay::agent
