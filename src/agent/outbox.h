// How the agent's state machines talk to connections, to a job's store and drain, and to the network, so that tests can
// stand in for all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/depot_parts.h"
#include "agent/drain.h"
#include "agent/member_id.h"
#include "agent/store.h"
#include "base/clock.h"
#include "net/transport.h"
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

// What a run's agents talk over.
struct Network {
  std::unique_ptr<net::Transport> transport;
  double heartbeat_s = 1;
  const Clock* clock = &system_clock();  // of the heartbeat; a simulation has its own
};

// Payload to and from the node's disk, of all jobs, since the agent's start.
struct DiskTraffic {
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
};

class StoreLink {
 public:
  virtual ~StoreLink() = default;
  virtual void post(Command command) = 0;
  virtual void post_drain(DrainCommand command) = 0;
  // What a run on several nodes needs; who serves one node only has none of it.
  // `secret`: 64 hexadecimal digits. Errors: unsupported (there is no network here), invalid, port_in_use, config, permission, io.
  virtual Result<Network> make_network(const MemberId&, const std::string& /*secret*/) {
    return Error(Code::unsupported, "this agent serves jobs on one node only");
  }
  // Made when it is needed first; null: there is none here.
  virtual const DepotParts* depot() { return nullptr; }
  // The job's network() is to be called whenever this is readable, until it is closed.
  virtual Status watch(int /*descriptor*/) { return {}; }
  virtual DiskTraffic traffic() const { return {}; }
};

}  // namespace backstay::agent
