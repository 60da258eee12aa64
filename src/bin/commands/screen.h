// A full screen on the terminal of stdin and stdout: other screen buffer, no cursor, keys one by
// one. The destructor restores the terminal, and so do the signals that end a program.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

namespace backstay::bin {

class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Shows the lines from the top; the rest is cut off.
  void show(const std::vector<std::string>& lines) const;
  // Waits at most `timeout_s` for a key. 0: none came; 'q' also if the input has ended.
  char key(double timeout_s) const;

 private:
  termios before_{};
  bool changed_ = false;
};

}  // namespace backstay::bin
