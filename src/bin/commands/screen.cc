#include "bin/commands/screen.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "bin/parts/progress.h"

namespace backstay::bin {
namespace {

constexpr std::string_view enter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view leave = "\x1b[?25h\x1b[?1049l";
termios to_restore{};

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// Only async-signal-safe calls.
void restore_and_end(int signal) {
  put(leave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &to_restore);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

Screen::Screen() {
  if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
    to_restore = before_;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    changed_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, restore_and_end);
  }
  put(enter);
}

Screen::~Screen() {
  put(leave);
  if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }

// A line that is cut ends in a mark, so that it is not taken for the whole.
std::string fitted(const std::string& line, std::size_t columns) {
  if (static_cast<std::size_t>(std::count_if(line.begin(), line.end(), begins_character)) <=
      columns)
    return line;
  std::size_t kept = 0;
  for (std::size_t left = columns; kept < line.size(); ++kept)
    if (begins_character(line[kept]) && left-- == 1) break;
  return line.substr(0, kept) + "…";
}

}  // namespace

void Screen::show(const std::vector<std::string>& lines) const {
  const auto columns = static_cast<std::size_t>(terminal_columns(STDOUT_FILENO));
  const auto rows = std::min(lines.size(), static_cast<std::size_t>(terminal_rows(STDOUT_FILENO)));
  // Overwritten line by line instead of cleared first: nothing flickers.
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < rows; ++i)
    text += (i ? "\r\n" : "") + fitted(lines[i], columns) + "\x1b[K";
  put(text + "\x1b[J");
}

char Screen::key(double timeout_s) const {
  pollfd waiting{STDIN_FILENO, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout_s * 1000)) <= 0) return 0;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

}  // namespace backstay::bin
