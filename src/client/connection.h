// A rank's or a writer's connection to the agent of its node: the socket, the mapped pool, the
// control page.
//
// Belongs to one thread at a time. After an error of code agent_lost, or any Failure message of the
// agent, the connection is over: usable() is false and every call returns agent_lost. An agent that
// answers nothing for a given time counts as lost, as it may be stopped or stuck in the kernel for
// good. An agent that is alive and waits for its disk does answer, and is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "client/mapping.h"
#include "wire/message.h"

namespace backstay::client {

class Connection {
 public:
  // Connects, says `hello` (a Hello, or a Join) and maps the memory that comes with the welcome.
  // Blocks until the agent answers or `deadline`. Errors: agent_lost (no agent listens, or it is
  // ending), timeout, and the agent's refusals (busy, protocol, invalid, unsupported ...).
  static Result<std::unique_ptr<Connection>> open(const std::string& socket_path,
                                                  const wire::Message& hello,
                                                  std::uint64_t deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Looks without blocking whether the agent is still there; drops answers that no call waits for.
  bool usable();
  // The agent ended the connection and still runs: it may have lent our buffers to other ranks.
  bool cut_off() const { return cut_off_; }
  // The agent was given up because it took and answered nothing (give_up_after()).
  bool given_up() const { return given_up_; }

  // Says goodbye if it still can, so that the agent does not take the end for a death, and closes.
  // Not usable afterwards. A version in the making is given up for all ranks.
  void end();

  // Closes the socket and says nothing, which the agent takes for a death. For the child of a fork,
  // whose copy it is: safe there, even if the parent was in the middle of a call.
  void leave_silently();

  // How long send() and receive() wait for an agent that takes and answers nothing; 0 (at first):
  // without limit.
  void give_up_after(double seconds) { hang_timeout_s_ = seconds; }

  Status send(const wire::Message& message);
  // Messages about cuts come without a question; receive() and usable() keep them for
  // take_unasked(). All that are here, without blocking.
  std::vector<wire::Message> take_unasked();
  // Readable when a message has come that nobody has looked at yet.
  int descriptor() const { return socket_.get(); }

  // The next message that is no unasked one. Errors: timeout, agent_lost, protocol; a Failure
  // becomes its error.
  Result<wire::Message> receive(std::uint64_t deadline = no_deadline);

  // Bytes of a buffer of the pool. Errors: protocol (no such buffer, or longer than one).
  Result<std::span<std::byte>> buffer(std::uint32_t index, std::uint32_t length) const;
  std::uint32_t buffer_bytes() const { return welcome_.buffer_bytes; }
  struct Pool {
    int descriptor = -1;         // the connection's, to be handed on
    std::span<std::byte> bytes;  // all of it
    // The part that the agent prefers for this rank. Whoever writes to it touches it (mapping.h)
    // before, so that no checkpoint pays for page faults: some 0.1 s for 512 MiB.
    std::span<std::byte> home;
  };
  Pool pool() const;
  // What the agent said at the start.
  const wire::Welcome& welcomed() const { return welcome_; }

  // The control page: requests to checkpoint so far, and whether the job shall stop.
  std::uint32_t requests() const;
  bool stop_requested() const;

 private:
  friend class Attended;
  Connection() = default;
  Status welcome(std::uint64_t deadline);
  Status map(const wire::Welcome& welcome, Fd pool, const Fd& control);
  // One packet, which is there. Nothing: it was an unasked one.
  Result<std::optional<wire::Message>> receive_one();
  void attend();  // to what an Attended has named; else to nothing
  Status wait_for(short events, std::uint64_t deadline);
  bool has_news() const { return !usable_ || !early_.empty(); }
  Status wait_patiently(short events, std::uint64_t deadline);
  Error hung(double seconds) const;
  Error lost(const Error& cause);

  Fd socket_;
  std::vector<wire::Message> unasked_;
  std::function<int()> attend_;
  int attend_in_ms_ = -1;
  std::deque<wire::Message> early_;  // answers that came while attend_ looked
  wire::Welcome welcome_;
  Fd pool_memory_;
  Mapping pool_;
  Mapping control_;
  double hang_timeout_s_ = 0;
  bool usable_ = true;
  bool cut_off_ = false;
  bool given_up_ = false;
};

// Sends a question and drops messages until one answers it: an Answer for which is_it() is true.
// Errors: those of send() and receive().
template <typename Answer, typename IsIt>
Result<Answer> ask(Connection& agent, const wire::Message& question, IsIt&& is_it,
                   std::uint64_t deadline = no_deadline) {
  BACKSTAY_TRY(agent.send(question));
  while (true) {
    BACKSTAY_ASSIGN(const wire::Message message, agent.receive(deadline));
    const auto* answer = std::get_if<Answer>(&message);
    if (answer != nullptr && is_it(*answer)) return *answer;
  }
}

// Holds the sum of a chunk's bytes, as the agent handed them over, against the chunk's checksum.
// Errors: corrupt, which names the bytes.
Status expect_sum(const wire::ChunkInPool& chunk, std::uint64_t sum);

}  // namespace backstay::client
