#include "agent/drain/durability.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/drain/due_version.h"
#include "agent/version/retention.h"
#include "base/failpoint.h"
#include "base/log.h"

namespace backstay::agent {

void Durability::open(DurableSettings settings) {
  around_.reset();  // what it does now would be taken for the new run's
  state_.durable_settings = std::move(settings);
  state_.versions.forget_shared();
  state_.durable_error.reset();
  state_.copy_failed.reset();
  live_ = false;
  stale_looks_ += std::exchange(state_.durable_looks, 0);
  opening_ = state_.durable_settings.on();
  if (opening_) state_.store.post_drain(OpenDurable{state_.durable_settings.dir});
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
    state_.durable_error = event.versions.error();
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
  if (!state_.durable_settings.on() || opening_ || copied_) return;
  if (around_) return around_->consider();
  if (state_.nodes > 1) return;  // they are not known yet
  const VersionNumber version = next();
  if (version == 0) return;
  copied_ = VersionPin(state_.versions, version, PinReason::copying);
  const DurableSettings& settings = state_.durable_settings;
  const format::CommitRecord& record = state_.versions.find(version)->disk->record;
  state_.store.post_drain(CopyVersion{record, settings.bytes_per_s,
                                      shared_expired(state_.versions, record, settings.keep)});
}

// Of a version of several nodes only a part is here.
VersionNumber Durability::next() const {
  DueVersion due(state_);
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.good() && row.disk->record.nodes == 1) due.consider(number, wanted_(number));
  }
  return due.answer();
}

void Durability::with(Peers& peers, const HeldFiles& held) {
  around_.emplace(
      state_, peers, held,
      DrainCoordinator::Events{.waited = wanted_,
                               .durable = [this](const StoredVersion& stored) { durable(stored); },
                               .failed = [this](const CopyFailed& event) { failed(event); },
                               .gone = [this](VersionNumber version) { gone(version); }});
}

void Durability::stand_still(bool on) {
  if (!state_.durable_settings.on() || std::exchange(stands_still_, on) == on) return;
  state_.store.post_drain(PauseDrain{on});
}

void Durability::set_live(bool on) {
  if (!state_.durable_settings.on() || std::exchange(live_, on) == on) return;
  state_.store.post_drain(SetLive{on});
}

void Durability::end_of_copy(VersionNumber version) {
  copied_.release();
  state_.versions.changed(version);
  consider();
}

void Durability::on(const VersionDurable& event) {
  const bool ours = copied_.version() == event.stored.version;
  if (!ours && around_) return around_->on(event);
  durable(event.stored);
  if (ours) end_of_copy(event.stored.version);
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

void Durability::on(const CopyFailed& event) {
  if (copied_.version() != event.version) {
    if (around_) around_->on(event);
    return;  // or of an earlier run
  }
  if (event.source_is_damaged && state_.on_disk(event.version) != nullptr) {
    const std::string& why = event.error.message();
    state_.versions.quarantined(event.version, Where::disk, why);
    state_.store.post(SetAside{event.version, why});
    state_.record("set_aside", {{"version", event.version}, {"why", why}});
  } else {
    failed(event);
  }
  end_of_copy(event.version);
}

void Durability::failed(const CopyFailed& event) {
  spdlog::error(
      "version could not be copied to {} job={} version={} error=\"{}\"; the next "
      "version is tried again",
      state_.durable_settings.dir, state_.name, event.version, event.error.to_string());
  state_.copy_failed = event;
  state_.record("durable_failed", {{"version", event.version},
                                   {"code", code_name(event.error.code())},
                                   {"why", event.error.message()}});
  // Older ones that were left out for this one are not copied any more.
  for (const auto& [number, row] : state_.versions.rows()) {
    if (number < event.version) state_.versions.changed(number);
  }
  state_.versions.changed(event.version);
}

void Durability::on(const Removed& event) {
  for (const VersionNumber version : event.versions) gone(version);
  if (around_) around_->on(event);
}

void Durability::gone(VersionNumber version) {
  state_.versions.removed(version, Where::shared);
  state_.record("removed", {{"version", version}, {"from", "durable"}});
}

void Durability::on(const Event& event) {
  if (const auto* durable = std::get_if<VersionDurable>(&event)) return on(*durable);
  if (const auto* failed = std::get_if<CopyFailed>(&event)) return on(*failed);
  if (const auto* removed = std::get_if<Removed>(&event)) return on(*removed);
  if (!around_) return;
  if (const auto* prepared = std::get_if<CopyPrepared>(&event)) return around_->on(*prepared);
  if (const auto* part = std::get_if<PartCopied>(&event)) return around_->on(*part);
}

}  // namespace backstay::agent
