#include "capture/collector/reminder.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace backstay::files {

// Without a thread nothing is said.
Reminder::Reminder(Tell tell, std::function<std::string()> words)
    : tell_(std::move(tell)), words_(std::move(words)) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return;
  }
}

Reminder::~Reminder() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Reminder::run() {
  constexpr std::chrono::seconds first(2);
  constexpr std::chrono::seconds then(10);
  std::unique_lock lock(mutex_);
  for (auto pause = first; !changed_.wait_for(lock, pause, [this] { return ends_; });
       pause = then) {
    lock.unlock();
    if (const std::string words = words_(); !words.empty()) tell_(words);
    lock.lock();
  }
}

}  // namespace backstay::files
