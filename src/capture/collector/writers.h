// The collector's connections with the agent: a writer for each thread that needs one at a time.
//
// Any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "client/writer.h"

namespace backstay::files {

class Writers {
 public:
  explicit Writers(client::WriterSettings settings) : settings_(std::move(settings)) {}

  // Calls `use` with a writer that no other thread has; again with another one where the agent was
  // lost: it is started again then. Errors: what `use` returns, and those of joining.
  Status with(const std::function<Status(client::Writer&)>& use);
  // An agent has been asked to serve this job.
  bool has_joined() const { return joined_.load(); }

 private:
  Result<std::unique_ptr<client::Writer>> take();
  void put_back(std::unique_ptr<client::Writer> writer);

  const client::WriterSettings settings_;
  std::atomic<bool> joined_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<client::Writer>> idle_;
};

}  // namespace backstay::files
