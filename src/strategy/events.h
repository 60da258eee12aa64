// The event log beside the versions that ranks write (docs/format/events.md): rank 0 appends what
// all ranks report. Nothing depends on it, and a failure to write it is swallowed. Any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/event_log.h"

namespace backstay::strategy {

// One rank's report of its part in a version. Times are nanoseconds.
struct RankReport {
  std::uint64_t bytes = 0;      // of its object
  std::uint64_t begin_ns = 0;   // of its call, by its clock, since 1970
  std::uint64_t end_ns = 0;     // the program computes again
  std::uint64_t settle_ns = 0;  // it waits for the version before
  std::uint64_t open_ns = 0;
  std::uint64_t write_ns = 0;
  std::uint64_t close_ns = 0;
  std::uint64_t hand_over_ns = 0;  // a worker sends; a writer takes in
  std::uint64_t wait_ns = 0;       // a worker, until all was received
  bool writes = true;
};

class Events {
 public:
  using Fields = nlohmann::ordered_json;

  // On other ranks than 0 it writes nothing.
  Events(bool writes, const std::string& folder, std::string job, RunId run)
      : writes_(writes), log_(folder), job_(std::move(job)), run_(run) {}

  // Whether the run before ended by itself.
  bool last_run_finished() const { return log_.last_run_finished(); }
  // `fields`: an object.
  void append(const char* event, const Fields& fields) const;
  // With `code` and `why`.
  void append(const char* event, Fields fields, const Error& why) const;
  // With the times of all ranks. No level lies before durable.
  void captured(VersionNumber version, const std::vector<RankReport>& ranks) const;

 private:
  const bool writes_;
  const store::EventLog log_;
  const std::string job_;
  const RunId run_;
};

}  // namespace backstay::strategy
