#include "agent/disk/drain_parts.h"

#include "base/check.h"
#include "base/log.h"
#include "format/names.h"
#include "store/guarded_tier.h"

namespace backstay::agent {

// --- the coordinator's share ---------------------------------------------------------------------

void DrainParts::handle(const std::string& dir, const PrepareCopy& command) {
  prepared_.reset();
  auto there = prepare(dir, command);
  CopyPrepared event{command.ticket, {}, std::nullopt};
  if (there.ok()) {
    event.there = *there;
  } else {
    event.status = there.error();
  }
  if (!there.ok() || *there) prepared_.reset();
  world_.post_event(std::move(event));
}

namespace {

// Whole files of this very version, which an interrupted copy left.
bool is_a_beginning(tier::Tier& to, const format::CommitRecord& record, StoredVersion there) {
  return there.level == Level::none && there.damage.empty() &&
         store::find_in_doubt(to, record.job, there) && there.record.run == record.run;
}

}  // namespace

// The version, where it is there already.
Result<std::optional<StoredVersion>> DrainParts::prepare(const std::string& dir,
                                                         const PrepareCopy& command) {
  BACKSTAY_ASSIGN(auto to, world_.open_durable(dir));  // first: the lock would make the directory
  BACKSTAY_TRY(live_.take(dir));
  BACKSTAY_ASSIGN(store::HeldLock lock, world_.lock(dir));
  prepared_.emplace(Prepared{command.record, store::guarded(std::move(to), lock), lock});
  const format::CommitRecord& record = command.record;
  const StoredVersion there = store::look_at(*prepared_->to, job_, record.version);
  BACKSTAY_TRY(store::check_run(there, record));
  if (there.good()) {
    BACKSTAY_TRY(store::make_safe(*prepared_->to, record));
    return std::optional(there);
  }
  BACKSTAY_TRY(store::remove_unfinished(*prepared_->to, job_, record.version));
  // One of ours that is in quarantine there is copied again.
  if (!is_a_beginning(*prepared_->to, record, there)) {
    BACKSTAY_TRY(prepared_->to->remove(format::version_folder(job_, record.version)));
  }
  return std::optional<StoredVersion>();
}

void DrainParts::handle(const CommitCopy& command,
                        const std::function<void(const format::CommitRecord&)>& recorded) {
  const Status status = prepared_ ? store::commit_copy(*prepared_->to, command.record)
                                  : Status(Error(Code::again, "the run is over"));
  if (status.ok()) {
    recorded(command.record);
  } else {
    world_.post_event(CopyFailed{command.record.version, status.error(), false});
    give_up_prepared();
  }
  prepared_.reset();
}

// What a node alone leaves of a copy helps nobody to go on, and takes room. Of several nodes whole
// files stay.
void DrainParts::give_up_prepared() {
  if (!prepared_) return;
  const format::CommitRecord& record = prepared_->record;
  if (record.nodes == 1) {
    const Status removed =
        prepared_->to->remove(format::version_folder(record.job, record.version));
    if (!removed.ok()) {
      spdlog::warn("the rest of a copy stays until the next copy job={} version={} error=\"{}\"",
                   job_, record.version, removed.error().to_string());
    }
  }
  prepared_.reset();
}

// --- a turn --------------------------------------------------------------------------------------

void DrainParts::handle(const std::string& dir, const CopyPart& command) {
  BACKSTAY_CHECK(!part_);
  if (const Status status = begin(dir, command); !status.ok()) {
    world_.post_event(PartCopied{command.ticket, status, false, 0, 0});
  }
}

namespace {

store::PartReader::First pool_of(std::shared_ptr<const PooledPart> pooled) {
  if (!pooled) return nullptr;
  return [pooled = std::move(pooled)](std::uint64_t offset, std::span<std::byte> memory) {
    return pooled->read(offset, memory);
  };
}

}  // namespace

Status DrainParts::begin(const std::string& dir, const CopyPart& command) {
  BACKSTAY_ASSIGN(auto to, world_.open_durable(dir));
  BACKSTAY_ASSIGN(auto from, world_.open_tier(world_.local_dir));
  part_ = std::make_unique<Part>();
  part_->ticket = command.ticket;
  part_->from = std::move(from);
  part_->to = std::move(to);
  part_->copy.emplace(*part_->from, *part_->to, clock_,
                      store::VersionCopy::What{command.record, Level::durable, command.bytes_per_s,
                                               command.node, pool_of(command.pooled)});
  return {};
}

void DrainParts::step() {
  BACKSTAY_CHECK(part_);
  const Status status = part_->copy->step();
  if (!status.ok() || part_->copy->done()) answer(status);
}

void DrainParts::handle(const StopPart&) {
  if (part_) answer(Error(Code::again, "it was stopped"));
}

void DrainParts::answer(const Status& status) {
  BACKSTAY_CHECK(part_);
  PartCopied event{part_->ticket, status, false, 0, 0};
  if (status.ok()) {
    event.payload_bytes = part_->copy->part().payload_bytes;
    event.digest = part_->copy->part().digest;
    event.needs = part_->copy->part().needs;
  } else {
    event.source_is_damaged = part_->copy->source_is_damaged();
  }
  part_.reset();
  world_.post_event(std::move(event));
}

}  // namespace backstay::agent
