#include "base/failpoint.h"

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
  int pass = 1;  // the passing that counts, from 1
  std::atomic<int> passed{0};

  Armed() {
    const char* text = std::getenv("BACKSTAY_FAILPOINT");
    if (text == nullptr) return;
    const std::string spec = text;
    const auto equals = spec.find('=');
    const std::string action = equals == std::string::npos ? "" : spec.substr(equals + 1, 4);
    if (action != "kill" && action != "stop" && action != "hang") return;
    hangs = action == "hang";
    if (action == "stop") signal = SIGSTOP;
    name = spec.substr(0, equals);
    if (const auto at = spec.find('@', equals); at != std::string::npos) {
      pass = std::atoi(spec.c_str() + at + 1);
    }
    on = true;
  }
};

}  // namespace

void failpoint(std::string_view name) {
  static Armed armed;
  if (!armed.on || armed.name != name) return;
  if (armed.passed.fetch_add(1) + 1 != armed.pass) return;
  while (armed.hangs) ::pause();
  ::kill(::getpid(), armed.signal);
}

}  // namespace backstay
