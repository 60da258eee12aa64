// The event log beside the versions that ranks write (docs/format/events.md): rank 0 appends what
// all ranks report. Nothing depends on it, and a failure to write it is swallowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/event_log.h"

namespace backstay::strategy {

// What one rank tells of its part in a version.
struct RankReport {
  std::uint64_t payload_bytes = 0;  // of the parts that it wrote
  std::uint64_t digest = 0;         // the sum of their manifests'
  std::uint64_t bytes = 0;          // of its object
  std::uint64_t begin_ns = 0;       // of its call, by its clock, since 1970
  std::uint64_t end_ns = 0;         // its part is safe; for a worker: it may compute again
  // Of that time, in nanoseconds.
  std::uint64_t open_ns = 0;
  std::uint64_t write_ns = 0;
  std::uint64_t close_ns = 0;
  std::uint64_t hand_over_ns = 0;  // a worker sends; a writer takes in
  std::uint64_t wait_ns = 0;       // a worker, until all was received
  bool writes = true;
};

class Events {
 public:
  // On other ranks than 0 it writes nothing.
  Events(bool writes, const std::string& folder, std::string job, RunId run)
      : writes_(writes), log_(folder), job_(std::move(job)), run_(run) {}

  // Whether the run before ended by itself.
  bool last_run_finished() const { return log_.last_run_finished(); }
  void run_begins(int ranks, VersionNumber newest) const;
  void run_ends(bool stopped) const;
  void capture_begins(VersionNumber version) const;
  void captured(VersionNumber version, const std::vector<RankReport>& ranks) const;
  // Any thread.
  void durable(VersionNumber version) const;
  void capture_failed(VersionNumber version, const Error& why) const;
  void restart_begins() const;
  void restored(VersionNumber version) const;
  // The ranks could not use what was saved; else they could not read it.
  void restart_failed(const Error& why, bool refused) const;

 private:
  template <typename... Fields>
  void append(const char* event, Fields&&... fields) const;

  const bool writes_;
  const store::EventLog log_;
  const std::string job_;
  const RunId run_;
};

}  // namespace backstay::strategy
