// How the agent's state machines talk to a job's store and drain, and to the network, so that tests
// can stand in for all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/disk/drain.h"
#include "agent/disk/peer_file_parts.h"
#include "agent/disk/store.h"
#include "agent/version/event_sink.h"
#include "agent/version/member_id.h"
#include "base/check.h"
#include "base/clock.h"
#include "net/transport.h"

namespace backstay::agent {

// What a run's agents talk over.
struct Network {
  std::unique_ptr<net::Transport> transport;
  double heartbeat_s = 1;
  const Clock* clock = &system_clock();  // of the heartbeat; a simulation has its own
};

// How the local tier came out, for `status` (io_uring, O_DIRECT ...). Filled by the tier's maker,
// in a store's thread.
struct DiskFacts {
  bool io_uring = false;
  bool direct = false;  // of the segment written last; false before the first
  bool registered_buffers = false;
  std::string why_not;
};

// Payload to and from the node's disk, of all jobs, since the agent's start.
struct DiskTraffic {
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
};

class StoreLink : public EventSink {
 public:
  virtual void post(Command command) = 0;
  virtual void post_drain(DrainCommand command) = 0;
  // Of a job whose captured files come home. The answers are events of the job.
  virtual void post_home(HomeOrders) { BACKSTAY_CHECK(!"captured files stay in the store here"); }
  void append(std::string line) final { post(AppendEvent{std::move(line)}); }
  // What a run on several nodes needs; who serves one node only has none of it.
  // `secret`: 64 hexadecimal digits. Errors: unsupported (there is no network here), invalid,
  // port_in_use, config, permission, io.
  virtual Result<Network> make_network(const MemberId&, const std::string& /*secret*/) {
    return Error(Code::unsupported, "this agent serves jobs on one node only");
  }
  // Made when it is needed first; null: there is none here.
  virtual const PeerFileParts* peer_files() { return nullptr; }
  // The job's network() is to be called whenever this is readable, until it is closed.
  virtual Status watch(int /*descriptor*/) { return {}; }
  virtual DiskTraffic traffic() const { return {}; }
};

}  // namespace backstay::agent
