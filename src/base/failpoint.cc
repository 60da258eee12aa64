#include "base/failpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

namespace backstay {

namespace {

struct Armed {
  bool on = false;
  std::string name;
  int signal = SIGKILL;
  bool hangs = false;
  bool waits = false;
  std::string pipe;
  int pass = 1;  // the passing that counts, from 1
  std::atomic<int> passed{0};

  Armed() {
    const char* text = std::getenv("BACKSTAY_FAILPOINT");
    if (text == nullptr) return;
    const std::string spec = text;
    const auto equals = spec.find('=');
    const std::string action = equals == std::string::npos ? "" : spec.substr(equals + 1, 4);
    const char* between = std::getenv("BACKSTAY_FAILPOINT_PIPE");
    waits = action == "wait" && between != nullptr;
    if (waits) pipe = between;
    if (action != "kill" && action != "stop" && action != "hang" && !waits) return;
    hangs = action == "hang";
    if (action == "stop") signal = SIGSTOP;
    name = spec.substr(0, equals);
    if (const auto at = spec.find('@', equals); at != std::string::npos) {
      pass = std::atoi(spec.c_str() + at + 1);
    }
    on = true;
  }
};

// Opening a named pipe lasts until its other end is opened too.
void meet(const std::string& pipe, int how) {
  const int end = ::open(pipe.c_str(), how | O_CLOEXEC);
  if (end >= 0) ::close(end);
}

}  // namespace

void failpoint(std::string_view name) {
  static Armed armed;
  if (!armed.on || armed.name != name) return;
  if (armed.passed.fetch_add(1) + 1 != armed.pass) return;
  if (armed.waits) {
    meet(armed.pipe + ".reached", O_WRONLY);
    meet(armed.pipe + ".go", O_RDONLY);
    return;
  }
  while (armed.hangs) ::pause();
  ::kill(::getpid(), armed.signal);
}

}  // namespace backstay
