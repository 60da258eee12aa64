#include "harness.h"

namespace backstay::agent::testing {

JobHarness::JobHarness(std::uint32_t buffers, StoreWorker::MakeTier make_tier, Threads threads,
                       DrainWorld world)
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

void JobHarness::post(Command command) {
  if (store_) return store_->post(std::move(command));
  commands_.push_back(std::move(command));
}

void JobHarness::post_drain(DrainCommand command) {
  if (const auto* live = std::get_if<SetLive>(&command)) live_said.push_back(live->on);
  drain_commands_.push_back(std::move(command));
}

void JobHarness::send(ConnectionId to, wire::Message message, std::vector<int> descriptors) {
  if (descriptors.size() == 2) page_descriptor_ = descriptors[1];
  if (absorb(to, message)) return;
  inbox_[to].push_back(std::move(message));
}

void JobHarness::step() {
  step_store();
  step_drain();
  for (Event& event : events_.take_all()) job_->on(event);
  job_->pump();
  answer_chunks();
  if (after_step) after_step();
}

bool JobHarness::idle() {
  return commands_.empty() && !worker_->busy() && events_.empty() && todo_.empty() && drain_idle();
}

Status JobHarness::join(Rank rank, std::uint32_t ranks, RunId run) {
  wire::Hello hello;
  hello.job = "job";
  hello.run = run;
  hello.rank = hello.local_rank = rank;
  hello.ranks = ranks * nodes;
  hello.local_ranks = ranks;
  hello.dir = "/unused";
  hello.nodes = nodes, hello.keep = versions_kept, hello.replicas = replicas;
  hello.durable_dir = durable.dir;
  hello.durable_every = durable.every;
  hello.durable_keep = durable.keep;
  hello.durable_bytes_per_s = durable.bytes_per_s;
  hello.drain_nodes_max = durable.nodes_max;
  hello.pid = static_cast<int>(4000 + rank);
  return job_->hello(connection(rank), hello);
}

void JobHarness::join_all(std::uint32_t ranks, RunId run) {
  for (Rank rank = 0; rank < ranks; ++rank) ASSERT_TRUE(join(rank, ranks, run).ok());
  run_until("welcome", [&] {
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (!has<wire::Welcome>(rank)) return false;
    }
    return true;
  });
  for (Rank rank = 0; rank < ranks; ++rank) welcome_ = take<wire::Welcome>(rank);
}

void JobHarness::leave(Rank rank, bool goodbye) {
  job_->disconnected(connection(rank), goodbye);
  inbox_.erase(connection(rank));
  std::erase_if(todo_, [rank](const auto& entry) { return entry.first == rank; });
}

void JobHarness::begin(Rank rank, VersionNumber version, std::vector<std::byte> data,
                       std::size_t front) {
  outgoing_[rank] = {version, std::move(data), front};
  receive(rank, wire::Begin{version, outgoing_[rank].data.size()});
}

wire::Captured JobHarness::captured(std::uint32_t ranks) {
  wire::Captured answer;
  for (Rank rank = 0; rank < ranks; ++rank) {
    run_until("captured", [&] { return has<wire::Captured>(rank); });
    answer = take<wire::Captured>(rank);
  }
  return answer;
}

JobHarness::Back JobHarness::restart(std::uint32_t ranks, VersionNumber version) {
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

void JobHarness::receive(Rank rank, const wire::Message& message) {
  const Status status = job_->receive(connection(rank), message);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().to_string());
}

std::uint32_t JobHarness::requests() const {
  std::uint32_t word = 0;
  EXPECT_EQ(::pread(page_descriptor_, &word, sizeof word, 0), ssize_t{sizeof word});
  return word;
}

void JobHarness::start_fetch(Rank rank, VersionNumber version) {
  incoming_[rank] = {};
  receive(rank, wire::Fetch{version, rank});
}

JobHarness::Back JobHarness::fetched(Rank rank) {
  run_until("fetched", [&] { return incoming_[rank].over; });
  const Incoming& in = incoming_[rank];
  Back back;
  back.code = in.code;
  back.message = in.message;
  back.version = in.plan.version;
  back.data[rank] = in.data;
  return back;
}

void JobHarness::hold_chunks(bool hold) {
  hold_chunks_ = hold;
  if (!hold) todo_.insert(todo_.end(), held_back_.begin(), held_back_.end());
}

std::vector<wire::ChunkInPool> JobHarness::held_chunks() const {
  std::vector<wire::ChunkInPool> all;
  for (const auto& [rank, message] : held_back_) {
    const auto& chunks = std::get<wire::Chunks>(message).chunks;
    all.insert(all.end(), chunks.begin(), chunks.end());
  }
  return all;
}

void JobHarness::step_store() {
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

void JobHarness::step_drain() {
  if (!drain_commands_.empty()) {
    DrainCommand next = std::move(drain_commands_.front());
    drain_commands_.pop_front();
    drain_->handle(std::move(next));
  } else if (drain_->busy()) {
    drain_->step();
  }
  for (Event& event : std::exchange(drain_events_, {})) job_->on_drain(event);
}

bool JobHarness::absorb(ConnectionId to, const wire::Message& message) {
  if (const auto* grant = std::get_if<wire::Grant>(&message)) {
    auto& all = granted_[rank_of(to)];
    all.insert(all.end(), grant->buffers.begin(), grant->buffers.end());
  }
  if (std::holds_alternative<wire::Grant>(message) || std::holds_alternative<wire::Plan>(message) ||
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

void JobHarness::answer_chunks() {
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

void JobHarness::fill(Rank rank, const wire::Grant& grant) {
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

void JobHarness::planned(Rank rank, const wire::Plan& plan) {
  Incoming& in = incoming_[rank];
  in = {};
  in.plan = plan;
  in.data.resize(plan.object_bytes);
  in.code = plan.code;
  in.message = plan.message;
  in.over = plan.code != Code::ok;
}

void JobHarness::look_at(Rank rank, const wire::Chunks& chunks) {
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

void JobHarness::keep(Incoming& in, const wire::ChunkInPool& chunk) {
  if (in.plan.from_pool) return in.kept.push_back(chunk);
  copy(in, chunk);
  in.exchanged.push_back(chunk.buffer);
  std::memset(pool_->buffer(chunk.buffer).data(), ours, buffer_bytes);
}

void JobHarness::take_back(Rank rank, const wire::Withdraw& withdraw) {
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

void JobHarness::deliver(Rank rank) {
  Incoming& in = incoming_[rank];
  in.delivering = true;
  for (const wire::ChunkInPool& chunk : in.kept) copy(in, chunk);
  maybe_restored(rank);
}

void JobHarness::copy(Incoming& in, const wire::ChunkInPool& chunk) {
  std::memcpy(in.data.data() + chunk.object_offset, pool_->buffer(chunk.buffer).data(),
              chunk.length);
  in.delivered += chunk.length;
}

void JobHarness::maybe_restored(Rank rank) {
  Incoming& in = incoming_[rank];
  if (!in.delivering || in.delivered != in.plan.object_bytes) return;
  in.delivered = 0;
  receive(rank, wire::Restored{in.plan.version, Code::ok});
}

}  // namespace backstay::agent::testing
