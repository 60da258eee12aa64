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
             Threads threads = Threads::real, DrainWorld world = {})
      : pool_(std::move(
            Pool::create({std::uint64_t{buffers} * buffer_bytes, buffer_bytes, false}).value())) {
    auto post_event = [this](Event event) { events_.put(std::move(event)); };
    if (threads == Threads::real) {
      store_ = std::make_unique<Store>("job", std::move(make_tier), post_event);
    } else {
      worker_ = std::make_unique<StoreWorker>("job", make_tier, post_event, nullptr);
    }
    world.post_event = [this](Event event) { drain_events_.push_back(std::move(event)); };
    drain_ = std::make_unique<DrainWorker>("job", std::move(world), system_clock());
    job_ = std::make_unique<Job>("job", "/unused", *pool_, *this, *this, system_clock(),
                                 std::move(ControlPage::create().value()));
  }

  void post(Command command) override {
    if (store_) return store_->post(std::move(command));
    commands_.push_back(std::move(command));
  }
  void post_drain(DrainCommand command) override {
    if (const auto* live = std::get_if<SetLive>(&command)) live_said.push_back(live->on);
    drain_commands_.push_back(std::move(command));
  }
  void send(ConnectionId to, wire::Message message, std::vector<int> descriptors) override {
    if (descriptors.size() == 2) page_descriptor_ = descriptors[1];
    if (absorb(to, message)) return;
    inbox_[to].push_back(std::move(message));
  }
  void close(ConnectionId) override {}
  Result<Network> make_network(const MemberId&, const std::string&) override {
    return Network{std::move(transport), heartbeat_s};
  }
  std::vector<bool> live_said;  // whether its program lives (liveness_lock.h)
  // A job of so many nodes, this one the first, and what it talks to the others over.
  static constexpr double heartbeat_s = 0.01;
  std::uint32_t nodes = 1, versions_kept = 2;
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
  void step() {
    step_store();
    step_drain();
    for (Event& event : events_.take_all()) job_->on(event);
    job_->pump();
    answer_chunks();
    if (after_step) after_step();
  }
  std::function<void()> after_step;

  // Without threads: nothing is left to do, for the store or for the job.
  bool idle() {
    return commands_.empty() && !worker_->busy() && events_.empty() && todo_.empty() &&
           drain_idle();
  }
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
  Status join(Rank rank, std::uint32_t ranks, RunId run = 7) {
    wire::Hello hello;
    hello.job = "job";
    hello.run = run;
    hello.rank = hello.local_rank = rank;
    hello.ranks = ranks * nodes;
    hello.local_ranks = ranks;
    hello.dir = "/unused";
    hello.nodes = nodes, hello.keep = versions_kept;
    hello.durable_dir = durable.dir;
    hello.durable_every = durable.every;
    hello.durable_keep = durable.keep;
    hello.durable_bytes_per_s = durable.bytes_per_s;
    hello.drain_nodes_max = durable.nodes_max;
    hello.pid = static_cast<int>(4000 + rank);
    return job_->hello(connection(rank), hello);
  }
  void join_all(std::uint32_t ranks, RunId run = 7) {
    for (Rank rank = 0; rank < ranks; ++rank) ASSERT_TRUE(join(rank, ranks, run).ok());
    run_until("welcome", [&] {
      for (Rank rank = 0; rank < ranks; ++rank) {
        if (!has<wire::Welcome>(rank)) return false;
      }
      return true;
    });
    for (Rank rank = 0; rank < ranks; ++rank) welcome_ = take<wire::Welcome>(rank);
  }
  void leave(Rank rank, bool goodbye = true) {
    job_->disconnected(connection(rank), goodbye);
    inbox_.erase(connection(rank));
    std::erase_if(todo_, [rank](const auto& entry) { return entry.first == rank; });
  }

  // Announces and hands over `data` as far as buffers come; finish() ends it.
  void begin(Rank rank, VersionNumber version, std::vector<std::byte> data) {
    outgoing_[rank] = {version, std::move(data), 0};
    receive(rank, wire::Begin{version, outgoing_[rank].data.size()});
  }
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
  wire::Captured captured(std::uint32_t ranks) {
    wire::Captured answer;
    for (Rank rank = 0; rank < ranks; ++rank) {
      run_until("captured", [&] { return has<wire::Captured>(rank); });
      answer = take<wire::Captured>(rank);
    }
    return answer;
  }
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
  Back restart(std::uint32_t ranks, VersionNumber version = 0) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      incoming_[rank] = {};
      receive(rank, wire::Restart{version});
    }
    Back back;
    for (Rank rank = 0; rank < ranks; ++rank) {
      run_until("restart", [&] {
        // A late answer to an earlier plan: it must neither count nor end the connection.
        if (stale_answers_ && !incoming_[rank].over) {
          receive(rank, wire::Verified{incoming_[rank].plan.version, {0}, true, "", 77});
        }
        return incoming_[rank].over;
      });
      const Incoming& in = incoming_[rank];
      EXPECT_TRUE(rank == 0 || back.code == in.code);
      EXPECT_TRUE(rank == 0 || back.version == in.plan.version);
      back.code = in.code;
      back.message = in.message;
      back.version = in.plan.version;
      back.from_pool = in.plan.from_pool;
      if (in.code == Code::ok) back.data[rank] = in.data;
    }
    return back;
  }

  void receive(Rank rank, const wire::Message& message) {
    const Status status = job_->receive(connection(rank), message);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().to_string());
  }

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
  std::uint32_t requests() const {
    std::uint32_t word = 0;
    EXPECT_EQ(::pread(page_descriptor_, &word, sizeof word, 0), ssize_t{sizeof word});
    return word;
  }
  // Every buffer that this rank was ever given to fill.
  const std::vector<std::uint32_t>& granted_to(Rank rank) { return granted_[rank]; }
  // Rank `rank` reads its object of `version` alone; fetched() plays it to its end.
  void start_fetch(Rank rank, VersionNumber version) {
    incoming_[rank] = {};
    receive(rank, wire::Fetch{version, rank});
  }
  Back fetched(Rank rank) {
    run_until("fetched", [&] { return incoming_[rank].over; });
    const Incoming& in = incoming_[rank];
    Back back;
    back.code = in.code;
    back.message = in.message;
    back.version = in.plan.version;
    back.data[rank] = in.data;
    return back;
  }
  // Ranks look at no chunk until they are let go on.
  void hold_chunks(bool hold) {
    hold_chunks_ = hold;
    if (!hold) todo_.insert(todo_.end(), held_back_.begin(), held_back_.end());
  }
  void hold_chunks_of(Rank rank) { slow_rank_ = rank; }
  bool holds_chunks() const { return !held_back_.empty(); }
  std::vector<wire::ChunkInPool> held_chunks() const {
    std::vector<wire::ChunkInPool> all;
    for (const auto& [rank, message] : held_back_) {
      const auto& chunks = std::get<wire::Chunks>(message).chunks;
      all.insert(all.end(), chunks.begin(), chunks.end());
    }
    return all;
  }
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
  void step_store() {
    if (!worker_) return;
    const bool busy = worker_->busy();
    const bool any = !commands_.empty();
    if (any) {
      Command next = std::move(commands_.front());
      commands_.pop_front();
      worker_->handle(std::move(next));
    }
    if (busy) worker_->reap(/*wait=*/!any);
  }

  // What the drain's thread does in one turn.
  void step_drain() {
    if (!drain_commands_.empty()) {
      DrainCommand next = std::move(drain_commands_.front());
      drain_commands_.pop_front();
      drain_->handle(std::move(next));
    } else if (drain_->busy()) {
      drain_->step();
    }
    for (Event& event : std::exchange(drain_events_, {})) job_->on_drain(event);
  }

  static Rank rank_of(ConnectionId id) { return static_cast<Rank>(id - 100); }

  // Messages that the played rank answers by itself. The answers are sent from answer_chunks(), as
  // a job must not be entered from inside of itself.
  bool absorb(ConnectionId to, const wire::Message& message) {
    if (const auto* grant = std::get_if<wire::Grant>(&message)) {
      auto& all = granted_[rank_of(to)];
      all.insert(all.end(), grant->buffers.begin(), grant->buffers.end());
    }
    if (std::holds_alternative<wire::Grant>(message) ||
        std::holds_alternative<wire::Plan>(message) ||
        std::holds_alternative<wire::Chunks>(message) ||
        std::holds_alternative<wire::Withdraw>(message) ||
        std::holds_alternative<wire::Deliver>(message)) {
      todo_.emplace_back(rank_of(to), message);
      return true;
    }
    auto incoming = incoming_.find(rank_of(to));
    if (const auto* captured = std::get_if<wire::Captured>(&message);
        captured != nullptr && incoming != incoming_.end() && incoming->second.delivering) {
      incoming->second.over = true;
      incoming->second.code = captured->code;
      incoming->second.message = captured->message;
      incoming->second.delivering = false;
      return true;
    }
    return false;
  }

  void answer_chunks() {
    while (!todo_.empty()) {
      auto [rank, message] = std::move(todo_.front());
      todo_.pop_front();
      if ((hold_chunks_ || slow_rank_ == rank) && std::holds_alternative<wire::Chunks>(message)) {
        held_back_.emplace_back(rank, std::move(message));
        continue;
      }
      if (auto* grant = std::get_if<wire::Grant>(&message)) fill(rank, *grant);
      if (auto* plan = std::get_if<wire::Plan>(&message)) planned(rank, *plan);
      if (auto* chunks = std::get_if<wire::Chunks>(&message)) look_at(rank, *chunks);
      if (std::holds_alternative<wire::Deliver>(message)) deliver(rank);
      if (auto* withdraw = std::get_if<wire::Withdraw>(&message)) take_back(rank, *withdraw);
    }
  }

  void fill(Rank rank, const wire::Grant& grant) {
    Outgoing& out = outgoing_.at(rank);
    if (grant.version != out.version) return;
    wire::Filled filled{grant.version, {}};
    for (const std::uint32_t buffer : grant.buffers) {
      const std::size_t size = std::min<std::size_t>(buffer_bytes, out.data.size() - out.at);
      const Bytes piece = Bytes(out.data).subspan(out.at, size);
      std::memcpy(pool_->buffer(buffer).data(), piece.data(), size);
      filled.chunks.push_back({buffer, static_cast<std::uint32_t>(size), out.at, checksum(piece)});
      out.at += size;
    }
    receive(rank, filled);
  }

  void planned(Rank rank, const wire::Plan& plan) {
    Incoming& in = incoming_[rank];
    in = {};
    in.plan = plan;
    in.data.resize(plan.object_bytes);
    in.code = plan.code;
    in.message = plan.message;
    in.over = plan.code != Code::ok;
  }

  void look_at(Rank rank, const wire::Chunks& chunks) {
    Incoming& in = incoming_[rank];
    if (chunks.attempt != in.plan.attempt || in.over) return;
    for (const wire::ChunkInPool& chunk : chunks.chunks) {
      if (!corrupt_.empty() && corrupt_.front() == rank) {
        corrupt_.pop_front();
        pool_->buffer(chunk.buffer)[0] ^= std::byte{1};
      }
      const Bytes piece = pool_->buffer(chunk.buffer).first(chunk.length);
      const bool good = checksum(piece) == chunk.checksum;
      if (in.delivering) copy(in, chunk);
      if (chunks.held && good) keep(in, chunk);
      receive(rank,
              wire::Verified{
                  chunks.version, {chunk.buffer}, good, good ? "" : "bad bytes", chunks.attempt});
      if (!good) return;
    }
    maybe_restored(rank);
  }

  // As a real rank does with chunks from the disk: it exchanges them with what its regions hold.
  void keep(Incoming& in, const wire::ChunkInPool& chunk) {
    if (in.plan.from_pool) return in.kept.push_back(chunk);
    copy(in, chunk);
    in.exchanged.push_back(chunk.buffer);
    std::memset(pool_->buffer(chunk.buffer).data(), ours, buffer_bytes);
  }

  void take_back(Rank rank, const wire::Withdraw& withdraw) {
    Incoming& in = incoming_[rank];
    for (const std::uint32_t buffer : in.exchanged) {
      const auto memory = pool_->buffer(buffer);
      EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                              [](std::byte byte) { return byte == std::byte{ours}; }))
          << "a buffer was given away before rank " << rank << " had its bytes back";
    }
    ++withdrawals_;
    receive(rank, wire::Withdrawn{withdraw.version, withdraw.attempt});
  }

  void deliver(Rank rank) {
    Incoming& in = incoming_[rank];
    in.delivering = true;
    for (const wire::ChunkInPool& chunk : in.kept) copy(in, chunk);
    maybe_restored(rank);
  }

  void copy(Incoming& in, const wire::ChunkInPool& chunk) {
    std::memcpy(in.data.data() + chunk.object_offset, pool_->buffer(chunk.buffer).data(),
                chunk.length);
    in.delivered += chunk.length;
  }

  void maybe_restored(Rank rank) {
    Incoming& in = incoming_[rank];
    if (!in.delivering || in.delivered != in.plan.object_bytes) return;
    in.delivered = 0;
    receive(rank, wire::Restored{in.plan.version, Code::ok});
  }

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
