// A thread inside of a user's program. It blocks all signals, so that the program's own threads get
// them.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace backstay {

// Throws std::system_error.
template <typename Body>
std::thread quiet_thread(Body&& body) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before{};
  } blocked;  // a new thread inherits it
  return std::thread(std::forward<Body>(body));
}

}  // namespace backstay
