#include "bin/parts/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "bin/parts/print.h"

namespace backstay::bin {
namespace {
using Steady = std::chrono::steady_clock;
constexpr auto quiet_time = std::chrono::seconds(1);
constexpr auto redraw_time = std::chrono::milliseconds(100);
}  // namespace

bool is_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind && std::string_view(kind) != "dumb";
}

int terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int terminal_rows(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

Progress::Progress(std::string what, std::uint64_t total) : what_(std::move(what)), total_(total) {
  if (is_terminal(STDERR_FILENO)) thread_ = std::thread([this] { draw_until_ended(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::phase(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  phased_ = true;
}

std::string Progress::line(double elapsed_s, int columns) const {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  const double rate = elapsed_s > 0 ? static_cast<double>(done) / elapsed_s : 0;
  if (total_ == 0) return fmt::format("{}  {}", what_, duration_text(elapsed_s));
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  std::string tail = fmt::format(" {:3.0f} %  {}", 100 * part,
                                 phased_ ? duration_text(elapsed_s) : rate_text(rate));
  if (rate > 0 && !phased_)
    tail +=
        "  " + duration_text(static_cast<double>(total_ - std::min(done, total_)) / rate) + " left";
  const int room = columns - 4 - static_cast<int>(what_.size() + tail.size());
  const auto cells = static_cast<std::size_t>(std::clamp(room, 0, 40));
  const auto full = static_cast<std::size_t>(part * static_cast<double>(cells));
  return what_ + " [" + std::string(full, '=') + std::string(cells - full, ' ') + "]" + tail;
}

void Progress::draw_until_ended() {
  const auto start = Steady::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, quiet_time, [&] { return ended_; })) return;
  do {
    const double elapsed_s = std::chrono::duration<double>(Steady::now() - start).count();
    to_stderr(fmt::format("\r\x1b[K{}", line(elapsed_s, terminal_columns(STDERR_FILENO))));
  } while (!changed_.wait_for(lock, redraw_time, [&] { return ended_; }));
  to_stderr("\r\x1b[K");
}

}  // namespace backstay::bin
