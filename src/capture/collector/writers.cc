#include "capture/collector/writers.h"

#include <utility>

namespace backstay::files {

Result<std::unique_ptr<client::Writer>> Writers::take() {
  {
    const std::lock_guard guard(mutex_);
    if (!idle_.empty()) {
      auto writer = std::move(idle_.back());
      idle_.pop_back();
      return writer;
    }
  }
  BACKSTAY_ASSIGN(auto joined, client::Writer::join(settings_));
  joined_ = true;
  return joined;
}

void Writers::put_back(std::unique_ptr<client::Writer> writer) {
  const std::lock_guard guard(mutex_);
  idle_.push_back(std::move(writer));
}

// All that are idle were of the agent that is lost.
Status Writers::with(const std::function<Status(client::Writer&)>& use) {
  constexpr int agents = 3;
  for (int attempt = 1;; ++attempt) {
    BACKSTAY_ASSIGN(auto writer, take());
    Status done = use(*writer);
    const bool lost = !done.ok() && done.error().code() == Code::agent_lost;
    if (!lost) {
      put_back(std::move(writer));
      return done;
    }
    std::vector<std::unique_ptr<client::Writer>> stale;
    {
      const std::lock_guard guard(mutex_);
      stale = std::exchange(idle_, {});
    }
    if (attempt == agents) return done;
  }
}

}  // namespace backstay::files
