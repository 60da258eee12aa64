// A job of the agent without sockets: a real pool, a real store thread on a tier of the test's
// choice, and ranks played by the test through recorded messages.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/disk/disk_threads.h"
#include "agent/disk/links.h"
#include "agent/job/job.h"
#include "base/checksum.h"
#include "base/clock.h"

namespace backstay::agent::testing {

class JobHarness final : public Outbox, public StoreLink {
 public:
  static constexpr std::uint32_t buffer_bytes = 64 * 1024;
  static constexpr unsigned char ours = 0xEE;  // what the ranks' regions hold before a restart

  // Who carries out the store's commands: a thread, as in the agent, or step() itself, one command
  // at a time, so that every run of a test is the same.
  enum class Threads { real, none };

  // `world`: what the job's drain needs; its events come to the job. It is played by step().
  JobHarness(std::uint32_t buffers, StoreWorker::MakeTier make_tier,
             Threads threads = Threads::real, DrainWorld world = {});

  void post(Command command) override;
  void post_drain(DrainCommand command) override;
  void send(ConnectionId to, wire::Message message, std::vector<int> descriptors) override;
  void close(ConnectionId) override {}
  Result<Network> make_network(const MemberId&, const std::string&) override {
    return Network{std::move(transport), heartbeat_s};
  }
  std::vector<bool> live_said;  // whether its program lives (liveness_lock.h)
  // A job of so many nodes, this one the first, and what it talks to the others over.
  static constexpr double heartbeat_s = 0.01;
  std::uint32_t nodes = 1, versions_kept = 2, replicas = 0;
  std::unique_ptr<net::Transport> transport;

  // Runs store events until `done()`; fails the test after a deadline.
  template <typename Condition>
  void run_until(const char* what, Condition done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "never happened: " << what;
      const bool was_idle = worker_ && idle();
      step();
      // Without threads nothing comes from elsewhere.
      ASSERT_FALSE(was_idle && idle() && !done()) << "nothing left to do, and no " << what;
    }
  }
  void step();
  std::function<void()> after_step;

  // Without threads: nothing is left to do, for the store or for the job.
  bool idle();
  bool drain_idle() const {
    return drain_commands_.empty() && drain_events_.empty() && !drain_->busy();
  }
  // The settings that ranks send with their hello.
  DurableSettings durable;
  void run_until_idle() {
    while (!idle()) step();
  }

  // --- a rank's moves (connection = rank + 100) ---
  static ConnectionId connection(Rank rank) { return rank + 100; }
  Status join(Rank rank, std::uint32_t ranks, RunId run = 7);
  void join_all(std::uint32_t ranks, RunId run = 7);
  void leave(Rank rank, bool goodbye = true);

  // Announces and hands over `data` as far as buffers come; finish() ends it.
  // `front` bytes of it are chunks of an older version, which was told before.
  void begin(Rank rank, VersionNumber version, std::vector<std::byte> data, std::size_t front = 0);
  bool sent_all(Rank rank) const { return outgoing_.at(rank).at == outgoing_.at(rank).data.size(); }
  void end(Rank rank) { receive(rank, wire::End{outgoing_.at(rank).version}); }

  // All ranks save `data(rank)` and wait for the answer.
  template <typename Data>
  wire::Captured capture(std::uint32_t ranks, VersionNumber version, Data data) {
    for (Rank rank = 0; rank < ranks; ++rank) begin(rank, version, data(rank));
    run_until("all sent", [&] {
      for (Rank rank = 0; rank < ranks; ++rank) {
        if (!sent_all(rank) && !has<wire::Captured>(rank)) return false;
      }
      return true;
    });
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (!has<wire::Captured>(rank)) end(rank);
    }
    return captured(ranks);
  }
  wire::Captured captured(std::uint32_t ranks);
  void wait_local(VersionNumber version) {
    run_until("local", [&] { return job_->level_of(version).level == Level::local; });
  }

  // All ranks ask for a restart and play it to its end; empty data and the code on failure.
  struct Back {
    Code code = Code::ok;
    std::string message;
    VersionNumber version = 0;
    std::map<Rank, std::vector<std::byte>> data;
    bool from_pool = false;
  };
  Back restart(std::uint32_t ranks, VersionNumber version = 0);

  void receive(Rank rank, const wire::Message& message);

  template <typename T>
  bool has(Rank rank) {
    for (const auto& message : inbox_[connection(rank)]) {
      if (std::holds_alternative<T>(message)) return true;
    }
    return false;
  }
  template <typename T>
  T take(Rank rank) {
    auto& inbox = inbox_[connection(rank)];
    for (auto at = inbox.begin(); at != inbox.end(); ++at) {
      if (!std::holds_alternative<T>(*at)) continue;
      T message = std::get<T>(std::move(*at));
      inbox.erase(at);
      return message;
    }
    ADD_FAILURE() << "no such message";
    return {};
  }

  Job& job() { return *job_; }
  Pool& pool() { return *pool_; }
  const wire::Welcome& welcome() const { return welcome_; }
  // Word 0 of the control page, as a rank reads it.
  std::uint32_t requests() const;
  // Every buffer that this rank was ever given to fill.
  const std::vector<std::uint32_t>& granted_to(Rank rank) { return granted_[rank]; }
  // Rank `rank` reads its object of `version` alone; fetched() plays it to its end.
  void start_fetch(Rank rank, VersionNumber version);
  Back fetched(Rank rank);
  // Ranks look at no chunk until they are let go on.
  void hold_chunks(bool hold);
  void hold_chunks_of(Rank rank) { slow_rank_ = rank; }
  bool holds_chunks() const { return !held_back_.empty(); }
  std::vector<wire::ChunkInPool> held_chunks() const;
  // Ranks also send answers to plans that were given up.
  void send_stale_answers() { stale_answers_ = true; }
  int withdrawals() const { return withdrawals_; }
  // Flips one byte of the next chunk that this rank is asked to verify.
  void corrupt_next_chunk_of(Rank rank) { corrupt_.push_back(rank); }

 private:
  std::map<Rank, std::vector<std::uint32_t>> granted_;
  struct Outgoing {
    VersionNumber version = 0;
    std::vector<std::byte> data;
    std::size_t at = 0;
  };
  struct Incoming {
    wire::Plan plan;
    std::vector<wire::ChunkInPool> kept;
    std::vector<std::uint32_t> exchanged;  // buffers that hold what our regions held
    std::vector<std::byte> data;
    std::uint64_t delivered = 0;
    bool delivering = false;
    bool over = false;
    Code code = Code::ok;
    std::string message;
  };

  // What the store's thread does in one turn.
  void step_store();

  // What the drain's thread does in one turn.
  void step_drain();

  static Rank rank_of(ConnectionId id) { return static_cast<Rank>(id - 100); }

  // Messages that the played rank answers by itself. The answers are sent from answer_chunks(), as
  // a job must not be entered from inside of itself.
  bool absorb(ConnectionId to, const wire::Message& message);

  void answer_chunks();

  void fill(Rank rank, const wire::Grant& grant);

  void planned(Rank rank, const wire::Plan& plan);

  void look_at(Rank rank, const wire::Chunks& chunks);

  // As a real rank does with chunks from the disk: it exchanges them with what its regions hold.
  void keep(Incoming& in, const wire::ChunkInPool& chunk);

  void take_back(Rank rank, const wire::Withdraw& withdraw);

  void deliver(Rank rank);

  void copy(Incoming& in, const wire::ChunkInPool& chunk);

  void maybe_restored(Rank rank);

  std::unique_ptr<Pool> pool_;
  Mailbox<Event> events_;
  std::unique_ptr<Store> store_;
  std::deque<DrainCommand> drain_commands_;
  std::deque<Event> drain_events_;
  std::unique_ptr<DrainWorker> drain_;
  std::unique_ptr<StoreWorker> worker_;  // instead of the store, without threads
  std::deque<Command> commands_;         // for the worker
  std::unique_ptr<Job> job_;
  std::map<ConnectionId, std::deque<wire::Message>> inbox_;
  std::deque<std::pair<Rank, wire::Message>> todo_;
  std::map<Rank, Outgoing> outgoing_;
  std::map<Rank, Incoming> incoming_;
  std::deque<Rank> corrupt_;
  bool stale_answers_ = false;
  int withdrawals_ = 0;
  bool hold_chunks_ = false;
  std::optional<Rank> slow_rank_;
  std::deque<std::pair<Rank, wire::Message>> held_back_;
  wire::Welcome welcome_;
  int page_descriptor_ = -1;
};

}  // namespace backstay::agent::testing
