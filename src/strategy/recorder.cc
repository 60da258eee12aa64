#include "strategy/recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/attempt.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/quiet_thread.h"
#include "format/names.h"
#include "store/catalog.h"

namespace backstay::strategy {

namespace {
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
constexpr nanoseconds shortest_pause = milliseconds(2);
constexpr nanoseconds longest_pause = milliseconds(1000);
// The thread looks again after this part of the time that has passed, so it records a version at
// most that much late.
constexpr int share_of_time = 8;
}  // namespace

Recorder::Recorder(Directory& directory, format::CommitRecord record,
                   std::function<void()> recorded)
    : directory_(directory),
      record_(std::move(record)),
      recorded_(std::move(recorded)),
      found_(record_.nodes),
      thread_(quiet_thread([this] { run(); })) {}

Status Recorder::finish() {
  {
    const std::lock_guard lock(mutex_);
    last_look_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return so_far();
}

Status Recorder::so_far() {
  const std::lock_guard lock(mutex_);
  return outcome_.value_or(Status());
}

// --- the thread ----------------------------------------------------------------------------------

void Recorder::run() {
  const Clock& clock = system_clock();
  const std::uint64_t began = clock.monotonic_ns();
  std::unique_lock lock(mutex_);
  while (!outcome_) {
    const bool last = last_look_;
    lock.unlock();
    std::optional<Status> outcome;
    const Status looked = attempt([&]() -> Status {
      outcome = look();
      return {};
    });
    if (!looked.ok()) outcome = looked;
    if (!outcome && last) outcome = Error(Code::state, "a part of it was never finished");
    if (outcome && !outcome->ok() && !directory_.given_up(record_.version)) {
      tell_failure(outcome->error());
    }
    lock.lock();
    outcome_ = std::move(outcome);
    const nanoseconds passed(clock.monotonic_ns() - began);
    const nanoseconds pause = std::clamp(passed / share_of_time, shortest_pause, longest_pause);
    if (!outcome_) changed_.wait_for(lock, pause, [&] { return last_look_; });
  }
}

// For the ranks that wait for the version.
void Recorder::tell_failure(const Error& why) {
  (void)attempt([&] {
    return store::set_aside(directory_.tier(), record_.job, record_.version, why.message());
  });
}

// None: parts are missing.
std::optional<Status> Recorder::look() {
  const auto found = find_parts();
  if (!found.ok()) return found.error();
  if (*found < record_.nodes) return std::nullopt;
  failpoint("strategy.found");
  record_.committed_ns = system_clock().wall_ns();
  const Status recorded = directory_.record(record_);
  if (recorded.ok()) recorded_();
  return recorded;
}

// Takes in the manifests that have come since the last time. How many there are.
Result<std::size_t> Recorder::find_parts() {
  const std::string folder = format::version_folder(record_.job, record_.version);
  tier::Tier& tier = directory_.tier();
  if (const auto why = directory_.given_up(record_.version)) return *why;
  BACKSTAY_ASSIGN(const auto names, tier.list(folder));
  for (const std::string& name : names) {
    const auto part = format::node_of_manifest(name);
    if (!part || *part >= record_.nodes || found_[*part]) continue;
    BACKSTAY_ASSIGN(const Buffer bytes, tier.get(folder + "/" + name, format::manifest_bytes_max));
    BACKSTAY_ASSIGN(const auto manifest, format::decode_manifest(bytes));
    if (manifest.run != record_.run) return Error(Code::busy, "a part of another run is there");
    const auto of_part = format::record_of(manifest, bytes);
    record_.payload_bytes += of_part.payload_bytes;
    record_.manifests_sum += of_part.manifests_sum;
    found_[*part] = true;
  }
  return static_cast<std::size_t>(std::ranges::count(found_, true));
}

}  // namespace backstay::strategy
