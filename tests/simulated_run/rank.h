// A rank of a simulated run, as its agent sees it: what src/client does, without regions. It
// answers what the agent sends; what all ranks agree upon is the program's (run.h).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/disk/links.h"
#include "agent/memory/pool.h"
#include "wire/message.h"

namespace backstay::simulated {

class SimulatedRank {
 public:
  explicit SimulatedRank(Rank number) : number_(number) {}

  // --- for the simulation ---
  // Sends to the agent; false: the connection is gone.
  using Send = std::function<void(const wire::Message&)>;
  void connect(Send send, agent::Pool& pool);
  void disconnect();
  bool connected() const { return pool_ != nullptr; }
  void receive(wire::Message message) { inbox_.push_back(std::move(message)); }
  bool has_mail() const { return !inbox_.empty(); }
  void read_one();

  Rank number() const { return number_; }
  std::string describe() const;

  // --- for the program ---
  const std::optional<wire::Welcome>& welcome() const { return welcome_; }
  // The connection was refused, or ended from the other side.
  const std::optional<Error>& failure() const { return failure_; }

  void ask_for_candidate(const wire::Candidates& question);
  const std::optional<wire::Candidate>& candidate() const { return candidate_; }

  // Hands over `object`; the answer is captured(). It begins with these chunks of version `base`,
  // all of them full; base 0: there is none.
  void save(VersionNumber version, std::vector<std::byte> object, VersionNumber base,
            const std::vector<std::size_t>& chunks);
  const std::optional<wire::Captured>& captured() const { return captured_; }

  void restart(const wire::Restart& wanted);
  // All chunks were verified: the program agrees and then calls proceed().
  bool ready() const { return ready_.has_value(); }
  void proceed(bool good);
  // Ended: with an object, or with the reason.
  const std::optional<Status>& restored() const { return restored_; }
  const std::vector<std::byte>& object() const { return object_; }
  const wire::Plan& plan() const { return plan_; }

 private:
  // To the agent, which may have died since.
  void say(const wire::Message& message) {
    if (send_) send_(message);
  }
  enum class Phase { idle, waiting, verifying, delivering, done };
  void on(const wire::Grant& grant);
  void on(const wire::Plan& plan);
  void on(const wire::Chunks& chunks);
  void on(const wire::Withdraw& withdraw);
  void on(const wire::Deliver& deliver);
  void on(const wire::Captured& captured);
  void finish_if_complete();
  bool copy(const wire::ChunkInPool& chunk);
  void end_restart(Status status);

  const Rank number_;
  Send send_;
  agent::Pool* pool_ = nullptr;
  std::deque<wire::Message> inbox_;
  std::optional<wire::Welcome> welcome_;
  std::optional<Error> failure_;
  std::optional<wire::Candidate> candidate_;

  VersionNumber saving_ = 0;
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;
  std::optional<wire::Captured> captured_;

  Phase phase_ = Phase::idle;
  wire::Plan plan_;
  std::optional<wire::Ready> ready_;
  std::vector<wire::ChunkInPool> held_;
  std::uint64_t delivered_ = 0;
  std::vector<std::byte> object_;
  std::optional<Status> restored_;
};

}  // namespace backstay::simulated
