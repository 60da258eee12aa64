// How the agent's state machines talk to connections and to a job's store and drain, so that tests can stand
// in for both.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/drain.h"
#include "agent/store.h"
#include "wire/message.h"

namespace backstay::agent {

using ConnectionId = std::uint64_t;

class Outbox {
 public:
  virtual ~Outbox() = default;
  // Never blocks; a connection that has gone swallows the message. Descriptors stay the caller's
  // and must stay open for the life of the job.
  virtual void send(ConnectionId to, wire::Message message, std::vector<int> descriptors = {}) = 0;
  // Ends a connection after what was sent to it.
  virtual void close(ConnectionId connection) = 0;
};

class StoreLink {
 public:
  virtual ~StoreLink() = default;
  virtual void post(Command command) = 0;
  virtual void post_drain(DrainCommand command) = 0;
};

}  // namespace backstay::agent
