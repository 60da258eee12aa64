// Tells people what is waited for, as long as that lasts: after two seconds, then every ten. A call
// that waits for an agent blocks in it, so a thread of its own speaks.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace backstay::files {

// A line for people.
using Tell = std::function<void(const std::string&)>;

class Reminder {
 public:
  // `words`: what is waited for now; "": nothing is said. Both are called by the reminder's thread.
  Reminder(Tell tell, std::function<std::string()> words);
  // Nothing is said after it. Precondition: no lock is held that `tell` or `words` takes.
  ~Reminder();
  Reminder(const Reminder&) = delete;
  Reminder& operator=(const Reminder&) = delete;

 private:
  void run();

  const Tell tell_;
  const std::function<std::string()> words_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace backstay::files
