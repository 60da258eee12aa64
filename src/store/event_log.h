// The event log of a job, docs/format/events.md: lines appended to a file that nothing depends on.
#pragma once

#include <string>

namespace backstay::store {

class EventLog {
 public:
  explicit EventLog(const std::string& job_folder) : path_(job_folder + "/events") {}

  // Appends `line` and a newline in one write. A failure is swallowed: a full disk must not disturb
  // what the log is about. Opens the file each time, so that it may be removed or moved by hand.
  void append(const std::string& line) const;

  // The newest line that tells of a run's begin or end says that it finished. False where the log
  // does not say.
  bool last_run_finished() const;

 private:
  std::string path_;  // without ".jsonl"
};

}  // namespace backstay::store
