// What else is seen to while a call waits for the agent's answers. One thread, the connection's.
#pragma once

#include <functional>
#include <utility>

#include "client/connection.h"

namespace backstay::client {

// While one lives, `attend` is called again and again: by now(), where the connection's
// receive() waits, and when an unasked message has come meanwhile. It returns in how many
// milliseconds again; -1: only then. It may use send(), usable() and take_unasked(), which drop no
// answer meanwhile.
class Attended {
 public:
  Attended(Connection& agent, std::function<int()> attend) : agent_(agent) {
    agent_.attend_ = std::move(attend);
    agent_.attend_in_ms_ = 0;
  }
  ~Attended() {
    agent_.attend_ = nullptr;
    agent_.early_.clear();
  }
  Attended(const Attended&) = delete;
  Attended& operator=(const Attended&) = delete;

  void now() { agent_.attend(); }

 private:
  Connection& agent_;
};

}  // namespace backstay::client
