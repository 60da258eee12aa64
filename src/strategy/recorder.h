// Rank 0's thread that records a version once it finds all of its parts, which writers finish while
// the program computes. It calls no MPI.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "strategy/directory.h"

namespace backstay::strategy {

class Recorder {
 public:
  // `record`: all but the sums. `recorded` is called in the thread once the version exists. The
  // directory outlives this. Throws std::system_error.
  Recorder(Directory& directory, format::CommitRecord record, std::function<void()> recorded);
  ~Recorder() { (void)finish(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // No part comes any more; returns once the version is recorded or given up. Errors: why it does
  // not exist.
  Status finish();
  // ok also while it is on its way.
  Status so_far();

 private:
  void run();
  std::optional<Status> look();
  void tell_failure(const Error& why);
  Result<std::size_t> find_parts();

  Directory& directory_;
  format::CommitRecord record_;
  const std::function<void()> recorded_;
  std::vector<bool> found_;  // by part; the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  bool last_look_ = false;
  std::optional<Status> outcome_;
  std::thread thread_;
};

}  // namespace backstay::strategy
