// A progress bar on stderr for anything that takes longer than a second on a terminal; nothing
// otherwise. Debian has no C++ library for it.
//
// add() is for any thread and costs one atomic addition; a thread of its own draws.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace backstay::bin {

class Progress {
 public:
  // `total` bytes will be reported; 0: not known, then only the time is shown.
  Progress(std::string what, std::uint64_t total);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  // Names the next of several steps. The bar then shows time, no speed.
  void phase(std::string what);

 private:
  void draw_until_ended();
  std::string line(double elapsed_s, int columns) const;

  std::string what_;     // guarded by mutex_
  bool phased_ = false;  // the same
  const std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

// True if `descriptor` is a terminal that understands cursor movements.
bool is_terminal(int descriptor);
// Columns of the terminal behind `descriptor`; 80 if it is none.
int terminal_columns(int descriptor);
int terminal_rows(int descriptor);

}  // namespace backstay::bin
