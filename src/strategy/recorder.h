// Rank 0's thread that records a version once it finds all of its parts, which writers finish while
// the program computes. It calls no MPI.
//
// A writer that fails sets the unfinished version aside, so that nobody records it or waits for it
// in vain.
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
  // directory outlives this.
  Recorder(Directory& directory, format::CommitRecord record, std::function<void()> recorded);
  // Gives up where the version is not recorded.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Once all parts are known to be there; `parts_are_there` false: they will never be. Errors: why
  // the version does not exist.
  Status finish(bool parts_are_there);
  // ok also while it is on its way.
  Status so_far();

 private:
  void run();
  std::optional<Status> look();
  Result<std::uint32_t> find_parts();

  Directory& directory_;
  format::CommitRecord record_;
  const std::function<void()> recorded_;
  std::vector<bool> found_;  // by part; the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  bool gives_up_ = false;
  std::optional<Status> outcome_;
  std::thread thread_;
};

}  // namespace backstay::strategy
