// A network inside one process and one thread: deterministic, with the clock of its maker.
//
// Data moves only inside progress() of the side that would move it: a fetch is served when the
// offering side makes progress, and a transport that makes none for `dead_after_s` is dead for its
// peers. The descriptors show that something has arrived, not that time has passed: a test that
// moves the clock calls progress() afterwards. There is no key: the process itself is the job.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "net/transport.h"

namespace backstay::net {

struct LoopbackOptions {
  double dead_after_s = 10;
  std::size_t offers_max = 256;
  std::size_t queued_bytes_max = std::size_t{1} << 20;
};

class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(const Clock& clock, LoopbackOptions options = {});

  // `address` is the name for connect() and the identity. An address is used once at a time. The
  // transports may outlive the network object.
  std::unique_ptr<Transport> make(const std::string& address);

  struct State;  // loopback.cc

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace backstay::net
