#include "agent/disk/drain.h"

#include <sys/resource.h>

#include "agent/disk/guarded_tier.h"
#include "base/log.h"

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

bool DrainWorker::busy() const { return reads() || ((copy_ || parts_.busy()) && !stands_still_); }

std::uint64_t DrainWorker::rests_until_ns() const {
  if (reads()) return 0;
  if (parts_.busy()) return parts_.rests_until_ns();
  return copy_ ? copy_->version->rests_until_ns() : 0;
}

void DrainWorker::step() {
  if (reads()) return store_->reap(/*wait=*/true);
  if (stands_still_) return;
  if (parts_.busy()) return parts_.step();
  if (!copy_) return;
  VersionCopy& version = *copy_->version;
  if (const Status status = version.step(); !status.ok()) return give_up(status.error());
  if (version.done()) succeed(version.committed());
}

void DrainWorker::give_up(const Error& error) {
  const VersionNumber number = copy_->what.record.version;
  if (const Status removed = copy_->version->remove_rest(); !removed.ok()) {
    spdlog::warn("the rest of a copy stays until the next copy job={} version={} error=\"{}\"",
                 job_, number, removed.error().to_string());
  }
  const bool damaged = copy_->version->source_is_damaged();
  copy_.reset();
  world_.post_event(CopyFailed{number, error, damaged});
}

void DrainWorker::handle(Command& command) {
  if (store_) return store_->handle(std::move(command));
  // Nothing was opened: nothing is under way.
  if (const auto* settle = std::get_if<Settle>(&command))
    world_.post_event(Settled{settle->ticket});
}

void DrainWorker::handle(OpenDurable& command) {
  while (reads()) store_->reap(/*wait=*/true);
  if (copy_ && dir_ != command.dir)
    give_up(Error(Code::again, "the durable directory was changed"));
  parts_.handle(StopPart{});  // of a run that is over
  parts_.handle(EndCopy{});
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

void DrainWorker::handle(CopyVersion& command) {
  BACKSTAY_CHECK(!copy_ && store_);
  if (const Status status = begin(command); !status.ok()) {
    world_.post_event(CopyFailed{command.record.version, status.error(), false});
  }
}

Status DrainWorker::begin(const CopyVersion& command) {
  BACKSTAY_ASSIGN(auto to, world_.open_durable(dir_));  // first: the lock would make the directory
  BACKSTAY_TRY(live_.take(dir_));
  BACKSTAY_ASSIGN(HeldLock lock, world_.lock(dir_));
  to = guarded(std::move(to), lock);
  BACKSTAY_ASSIGN(auto from, world_.open_tier(world_.local_dir));
  BACKSTAY_TRY(remove_unfinished(*to, job_));
  BACKSTAY_ASSIGN(const bool there, make_way(*to, command.record));
  if (there) BACKSTAY_TRY(make_safe(*to, command.record));
  copy_.emplace();
  copy_->what = command;
  copy_->lock = std::move(lock);
  copy_->from = std::move(from);
  copy_->to = std::move(to);
  if (there) {
    succeed(look_at(*copy_->to, job_, command.record.version).record);
  } else {
    copy_->version.emplace(*copy_->from, *copy_->to, clock_,
                           VersionCopy::What{command.record, Level::durable, command.bytes_per_s});
  }
  return {};
}

void DrainWorker::succeed(const format::CommitRecord& record) {
  tell(record, copy_->what.expired);
  copy_.reset();
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

// --- the thread ----------------------------------------------------------------------------------

Drain::Drain(std::string job, DrainWorld world)
    : thread_([this, job = std::move(job), world = std::move(world)]() mutable {
        constexpr int patience = 10;  // the program's processes come first
        (void)::setpriority(PRIO_PROCESS, 0, patience);
        DrainWorker worker(std::move(job), std::move(world), system_clock());
        run(worker);
      }) {}

void Drain::run(DrainWorker& worker) {
  for (;;) {
    const bool busy = worker.busy();
    const std::uint64_t rest = busy ? worker.rests_until_ns() : no_deadline;
    auto next = busy && rest == 0 ? commands_.take(/*wait=*/false) : commands_.take_until(rest);
    if (next && std::holds_alternative<std::monostate>(*next)) return;
    if (next) worker.handle(std::get<DrainCommand>(std::move(*next)));
    if (worker.busy()) worker.step();
  }
}

Drain::~Drain() {
  commands_.put(std::monostate{});
  thread_.join();
}

}  // namespace backstay::agent
