#include "agent/drain/durability.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "base/failpoint.h"
#include "base/log.h"

namespace backstay::agent {

void Durability::open(DurableSettings settings, std::uint32_t nodes) {
  const bool goes_on = coordinator_ && alone_ && nodes == 1 && settings.on() &&
                       settings.dir == state_.durable_settings.dir;
  if (!goes_on) coordinator_.reset();  // what it does now would be taken for the new run's
  state_.durable_settings = std::move(settings);
  state_.versions.forget_shared();
  state_.versions.begin_copies();
  live_ = false;
  stale_looks_ += std::exchange(state_.durable_looks, 0);
  opening_ = state_.durable_settings.on();
  alone_ = nodes == 1;
  if (!opening_) return;
  state_.store.post_drain(OpenDurable{state_.durable_settings.dir});
  if (!alone_ || goes_on) return;
  begin(nullptr, nullptr);
  coordinator_->listed();
}

bool Durability::on(const Scanned& event) {
  if (stale_looks_ != 0) {
    --stale_looks_;
    return false;
  }
  if (state_.durable_looks != 0) {
    --state_.durable_looks;
  } else {
    opening_ = false;
    state_.versions.forget_shared();
  }
  if (!event.versions.ok()) {
    state_.versions.shared_unreadable(event.versions.error());
    spdlog::error("the durable directory cannot be read job={} error=\"{}\"", state_.name,
                  event.versions.error().to_string());
    return true;
  }
  for (const StoredVersion& stored : *event.versions) {
    state_.newest = std::max(state_.newest, stored.version);
    const VersionRow* row = state_.versions.find(stored.version);
    if (row != nullptr && row->shared && !row->shared->damage.empty()) continue;  // not marked yet
    state_.versions.found(stored, Where::shared);
  }
  return true;
}

void Durability::consider() {
  if (!state_.durable_settings.on() || opening_ || !coordinator_) return;
  coordinator_->consider();
  coordinator_->deliver();
}

void Durability::with(Peers& peers, const HeldFiles& held) { begin(&peers, &held); }

void Durability::begin(Peers* peers, const HeldFiles* held) {
  DrainEvents& events = *this;
  coordinator_.emplace(state_, levels_, peers, held, events);
}

void Durability::stand_still(bool on) {
  if (!state_.durable_settings.on() || std::exchange(stands_still_, on) == on) return;
  state_.store.post_drain(PauseDrain{on});
}

void Durability::set_live(bool on) {
  if (!state_.durable_settings.on() || std::exchange(live_, on) == on) return;
  state_.store.post_drain(SetLive{on});
}

void Durability::durable(const StoredVersion& stored) {
  const format::CommitRecord& record = stored.record;
  // Of two nodes' clocks, where another one recorded it.
  const double seconds = record.committed_ns < record.captured_ns
                             ? 0
                             : 1e-9 * static_cast<double>(record.committed_ns - record.captured_ns);
  spdlog::info("version is durable job={} version={} bytes={} seconds_after_capture={:.3f}",
               state_.name, record.version, record.payload_bytes, seconds);
  state_.versions.found(stored, Where::shared);
  state_.record(
      "durable",
      {{"version", record.version}, {"bytes", record.payload_bytes}, {"seconds", seconds}});
  failpoint("copy.6");
}

void Durability::failed(const CopyFailed& event) {
  if (event.source_is_damaged) return damaged(event.version, event.error.message());
  spdlog::error(
      "version could not be copied to {} job={} version={} error=\"{}\"; the next "
      "version is tried again",
      state_.durable_settings.dir, state_.name, event.version, event.error.to_string());
  state_.versions.not_copied(event);
  state_.record("durable_failed", {{"version", event.version},
                                   {"code", code_name(event.error.code())},
                                   {"why", event.error.message()}});
  // Older ones that were left out for this one are not copied any more.
  for (const auto& [number, row] : state_.versions.rows()) {
    if (number < event.version) state_.versions.changed(number);
  }
  state_.versions.changed(event.version);
}

// On this node's disk, and nobody has another copy: the shared storage has not failed.
void Durability::damaged(VersionNumber version, const std::string& why) {
  if (state_.on_disk(version) == nullptr) return;
  state_.versions.quarantined(version, Where::disk, why);
  state_.store.post(SetAside{version, why});
  state_.record("set_aside", {{"version", version}, {"why", why}});
}

void Durability::gone(VersionNumber version) {
  state_.versions.removed(version, Where::shared);
  state_.record("removed", {{"version", version}, {"from", "durable"}});
}

void Durability::on(const Event& event) {
  if (const auto* removed = std::get_if<Removed>(&event)) {
    for (const VersionNumber version : removed->versions) gone(version);
  }
  if (!coordinator_) return;
  if (const auto* durable = std::get_if<VersionDurable>(&event)) {
    coordinator_->on(*durable);
  } else if (const auto* failed = std::get_if<CopyFailed>(&event)) {
    coordinator_->on(*failed);
  } else if (const auto* removed = std::get_if<Removed>(&event)) {
    coordinator_->on(*removed);
  } else if (const auto* prepared = std::get_if<CopyPrepared>(&event)) {
    coordinator_->on(*prepared);
  } else if (const auto* part = std::get_if<PartCopied>(&event)) {
    coordinator_->on(*part);
  }
  coordinator_->deliver();
}

}  // namespace backstay::agent
