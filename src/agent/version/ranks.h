// The processes that are connected to a job, ranks and tools, and how they are answered.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/memory/pool.h"
#include "base/ids.h"
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

struct RankLink {
  ConnectionId connection = 0;
  Rank rank = 0;
  HomeRange home;
  std::int32_t pid = 0;
};

}  // namespace backstay::agent
