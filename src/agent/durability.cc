#include "agent/durability.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/failpoint.h"
#include "base/log.h"

namespace backstay::agent {

void Durability::open(DurableSettings settings) {
  state_.durable_settings = std::move(settings);
  state_.durable.clear();
  state_.durable_error.reset();
  state_.copy_failed.reset();
  opening_ = state_.durable_settings.on();
  if (opening_) state_.store.post_drain(OpenDurable{state_.durable_settings.dir});
}

void Durability::on(const Scanned& event) {
  opening_ = false;
  state_.durable.clear();
  if (!event.versions.ok()) {
    state_.durable_error = event.versions.error();
    spdlog::error("the durable directory cannot be read job={} error=\"{}\"", state_.name,
                  event.versions.error().to_string());
    return;
  }
  for (const StoredVersion& stored : *event.versions) {
    state_.newest = std::max(state_.newest, stored.version);
    state_.durable[stored.version] = stored;
  }
}

void Durability::consider() {
  if (!state_.durable_settings.on() || opening_ || copying_ != 0) return;
  copying_ = next();
  if (copying_ == 0) return;
  const DurableSettings& settings = state_.durable_settings;
  state_.store.post(Hold{copying_, true});
  state_.store.post_drain(
      CopyVersion{state_.disk.at(copying_).record, settings.bytes_per_s, settings.keep});
}

VersionNumber Durability::next() const {
  VersionNumber newest_durable = 0;
  for (const auto& [number, stored] : state_.durable) {
    if (stored.good()) newest_durable = number;
  }
  const VersionNumber given_up = state_.copy_failed ? state_.copy_failed->version : 0;
  VersionNumber due = 0;
  for (const auto& [number, stored] : state_.disk) {
    if (number <= given_up || !stored.good() || state_.is_durable(number)) continue;
    if (wanted_(number)) return number;
    if (number >= newest_durable + state_.durable_settings.every) due = number;
  }
  return due;
}

void Durability::stand_still(bool on) {
  if (!state_.durable_settings.on() || std::exchange(stands_still_, on) == on) return;
  state_.store.post_drain(StandStill{on});
}

void Durability::end_of_copy(VersionNumber version) {
  state_.store.post(Hold{version, false});
  copying_ = 0;
  changed_(version);
  consider();
}

void Durability::on(const VersionDurable& event) {
  const format::CommitRecord& record = event.stored.record;
  const double seconds = 1e-9 * static_cast<double>(record.committed_ns - record.captured_ns);
  spdlog::info("version is durable job={} version={} bytes={} seconds_after_capture={:.3f}",
               state_.name, record.version, record.payload_bytes, seconds);
  state_.durable[record.version] = event.stored;
  state_.record(
      "durable",
      {{"version", record.version}, {"bytes", record.payload_bytes}, {"seconds", seconds}});
  failpoint("copy.6");
  end_of_copy(record.version);
}

void Durability::on(const CopyFailed& event) {
  const auto local = state_.disk.find(event.version);
  const std::string& why = event.error.message();
  if (event.source_is_damaged && local != state_.disk.end()) {
    local->second.damage = why;
    state_.store.post(SetAside{event.version, why});
    state_.record("set_aside", {{"version", event.version}, {"why", why}});
  } else {
    spdlog::error(
        "version could not be copied to {} job={} version={} error=\"{}\"; the next "
        "version is tried again",
        state_.durable_settings.dir, state_.name, event.version, event.error.to_string());
    state_.copy_failed = event;
    state_.record(
        "durable_failed",
        {{"version", event.version}, {"code", code_name(event.error.code())}, {"why", why}});
  }
  end_of_copy(event.version);
}

void Durability::on(const Removed& event) {
  for (const VersionNumber version : event.versions) {
    state_.durable.erase(version);
    state_.record("removed", {{"version", version}, {"from", "durable"}});
    changed_(version);
  }
}

}  // namespace backstay::agent
