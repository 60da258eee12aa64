// How processes join a job, and how a run of it begins: of ranks, or of writers.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/job/job.h"
#include "base/log.h"
#include "base/machine.h"

namespace backstay::agent {

Status Job::check(const wire::Hello& hello) const {
  if (hello.ranks == 0 || hello.rank >= hello.ranks || hello.local_ranks == 0 ||
      hello.local_ranks > hello.ranks || hello.local_rank >= hello.local_ranks) {
    return Error(Code::invalid, "the rank or the number of ranks makes no sense");
  }
  if (hello.nodes == 0 || hello.node >= hello.nodes || hello.nodes > hello.ranks ||
      (hello.nodes == 1) != (hello.local_ranks == hello.ranks)) {
    return Error(Code::invalid, "the node or the number of nodes makes no sense");
  }
  return {};
}

namespace {

// Of a run of one node, in which there are no ranks but writers. Each of their versions holds other
// files: every one is to become durable.
wire::Hello as_run(const wire::Join& join, RunId run) {
  wire::Hello hello;
  hello.release = join.release;
  hello.job = join.job;
  hello.run = run;
  hello.pid = join.pid;
  hello.dir = join.dir;
  hello.keep = join.keep;
  hello.durable_dir = join.durable_dir;
  hello.durable_every = 1;
  hello.durable_keep = join.durable_keep;
  hello.durable_bytes_per_s = join.durable_bytes_per_s;
  return hello;
}

}  // namespace

Status Job::hello(ConnectionId connection, const wire::Hello& hello) {
  BACKSTAY_TRY(check(hello));
  return arrive({connection, hello, /*writer=*/false});
}

Status Job::join(ConnectionId connection, const wire::Join& join, RunId run) {
  return arrive({connection, as_run(join, run), /*writer=*/true});
}

Status Job::arrive(const Newcomer& newcomer) {
  if (scan_error_) return *scan_error_;
  if (scanned_) return admit(newcomer);
  waiting_.push_back(newcomer);
  return {};
}

// The run of writers lasts as long as the job is open here.
Status Job::admit(const Newcomer& newcomer) {
  if (state_.run != 0 && newcomer.writer != writers_.run_began()) {
    return Error(Code::state,
                 fmt::format("job {} is open for {}: give the other job another name", state_.name,
                             newcomer.writer ? "ranks" : "captured files"));
  }
  const bool in_its_run = writers_.run_began() || newcomer.hello.run == state_.run;
  bool waits = writers_.run_began() && !writers_.any() && looks_again();
  if (!in_its_run) {
    BACKSTAY_ASSIGN(const bool begun, begin_run(newcomer.hello));
    waits = !begun;
  }
  if (waits) {
    waiting_.push_back(newcomer);
    return {};
  }
  if (!newcomer.writer) return join_rank(newcomer.connection, newcomer.hello);
  join_writer(newcomer);
  return {};
}

// People remove versions while no process of the job runs. True: wait for looked().
bool Job::looks_again() {
  if (looking_) return true;
  if (std::exchange(looked_, true)) return false;
  looking_ = true;
  state_.store.post(LookAgain{recorded_here()});
  return true;
}

// False: it cannot begin yet.
Result<bool> Job::begin_run(const wire::Hello& hello) {
  if (!state_.links.empty()) {
    return Error(
        Code::busy,
        fmt::format("another run of job {} is alive on this node (rank {} of {} is process "
                    "{}); give this one another name (BACKSTAY_JOB) or wait for the "
                    "other to end",
                    state_.name, state_.links.begin()->first, state_.ranks,
                    state_.links.begin()->second.pid));
  }
  if (!may_begin_run()) {
    commit_coordinator_.hurry();
    return false;
  }
  if (taken_over_.contains(launch_of(hello.run)))
    return Error(Code::busy, fmt::format("job {} was taken over by another `backstay run "
                                         "--take-over`; this one does not go on",
                                         state_.name));
  if (looks_again()) return false;
  if (opened_for_ != hello.run) {
    if (durability_.opening()) return Error(Code::busy, "another run of the job begins; try again");
    opened_for_ = hello.run;
    durability_.open(
        {hello.durable_dir, std::max(hello.durable_every, 1u), std::max(hello.durable_keep, 1u),
         hello.durable_bytes_per_s, hello.drain_nodes_max},
        hello.nodes);
  }
  if (durability_.opening()) return false;
  BACKSTAY_TRY(new_run(hello));
  looked_ = false;
  return true;
}

Status Job::join_rank(ConnectionId connection, const wire::Hello& hello) {
  if (hello.ranks != state_.ranks || hello.local_ranks != state_.local_ranks ||
      hello.node != state_.node || hello.nodes != state_.nodes) {
    return Error(Code::invalid, "the ranks of this run disagree about their numbers and nodes");
  }
  const RankLink link{connection, hello.rank,
                      state_.pool.home_of(hello.local_rank, hello.local_ranks), hello.pid};
  if (!state_.links.emplace(hello.rank, link).second) {
    return Error(Code::busy, fmt::format("rank {} of this run is connected already", hello.rank));
  }
  state_.lost.erase(hello.rank);
  if (CutRelay* relay = cuts()) relay->joined(hello.rank);
  welcome(connection, link.home, /*writer=*/0);
  return {};
}

void Job::join_writer(const Newcomer& newcomer) {
  if (!writers_.run_began()) {
    writers_.begin_run();
    home_files_.begin_run();
  }
  looked_ = false;
  state_.keep = std::max(newcomer.hello.keep, 1u);
  const std::uint32_t number = writers_.join(newcomer.connection, newcomer.hello.pid);
  welcome(newcomer.connection, {}, number);
}

void Job::welcome(ConnectionId connection, HomeRange home, std::uint32_t writer) {
  wire::Welcome welcome;
  welcome.release = BACKSTAY_VERSION;
  welcome.pool_bytes = state_.pool.bytes();
  welcome.buffer_bytes = state_.pool.buffer_bytes();
  welcome.home_first = home.first;
  welcome.home_count = home.count;
  welcome.newest = state_.newest;
  welcome.finished = state_.finished_before;
  welcome.address = commit_coordinator_.run_membership()->address();
  welcome.settings = settings_;
  welcome.run = state_.run;
  welcome.writer = writer;
  state_.outbox.send(connection, std::move(welcome),
                     {state_.pool.descriptor(), page_->descriptor()});
}

Status Job::writer_message(ConnectionId connection, const wire::Message& message) {
  Status status;
  if (const auto* query = std::get_if<wire::Query>(&message)) {
    levels_.query(connection, query->version);
  } else if (const auto* await = std::get_if<wire::Await>(&message)) {
    levels_.await(connection, *await);
    durability_.consider();
  } else if (const auto* wanted = std::get_if<wire::BringHome>(&message)) {
    home_files_.settle(connection, *wanted);
  } else if (const auto* renamed = std::get_if<wire::MoveHome>(&message)) {
    home_files_.move(connection, *renamed);
  } else {
    status = writers_.receive(connection, message);
  }
  carry_out();
  return status;
}

namespace {

// None: replicas.
Result<std::optional<ParityShape>> protection_of(const wire::Hello& hello) {
  if (!hello.parity.empty()) {
    BACKSTAY_ASSIGN(const ParityShape shape, check_parity(hello.parity, hello.nodes));
    return std::optional(shape);
  }
  if (hello.nodes > 1) BACKSTAY_TRY(check_replicas(hello.replicas, hello.nodes));
  return std::optional<ParityShape>();
}

}  // namespace

Status Job::new_run(const wire::Hello& hello) {
  const auto protection = protection_of(hello);
  if (!protection.ok()) {
    // `backstay run` looks: another try may keep fewer copies, and would not be refused.
    state_.refused = {protection.error(), state_.clock.monotonic_ns()};
    return protection.error();
  }
  const std::optional<ParityShape> parity = *protection;
  forget_run();
  BACKSTAY_TRY(commit_coordinator_.begin_run(hello));
  parity_ = hello.nodes > 1 ? parity : std::nullopt;
  state_.parity = parity_.has_value();
  state_.replicas = hello.nodes > 1 && !parity_ ? hello.replicas : 0;
  protect_bytes_per_s_ = hello.protect_bytes_per_s;
  capture_.abort(Error(Code::rank_lost, "a new run of the job begins"));
  state_.run = hello.run;
  state_.ranks = hello.ranks;
  state_.local_ranks = hello.local_ranks;
  state_.node = hello.node;
  state_.nodes = hello.nodes;
  state_.keep = std::max(hello.keep, 1u);
  state_.lost.clear();
  state_.elsewhere = {};
  state_.forget_refusals();
  state_.finished_before = std::exchange(state_.finished, false);
  restarting_.clear();
  asking_.clear();
  if (hello.nodes == 1 && (hello.replicas > 0 || parity)) {
    state_.notes.emplace_back(parity ? "one node: no parity is kept elsewhere"
                                     : "one node: no copies are kept elsewhere");
    spdlog::info("{} job={}", state_.notes.back(), state_.name);
  }
  blocker_publisher_.clear();
  page_->clear();
  request_publisher_.clear();
  begin_cuts();
  record_run(hello);
  return {};
}

// What belongs to the run before.
void Job::forget_run() {
  set_around(nullptr);
  state_.brought_back.clear();
  status_poll_.reset();
  redundancy_.reset();
  state_.notes.clear();
  redundancy_wants_ns_ = no_deadline;
  files_.forget();
}

void Job::record_run(const wire::Hello& hello) {
  state_.record("run_begin", {{"ranks", hello.ranks},
                              {"nodes", hello.nodes},
                              {"host", host_name()},
                              {"newest", state_.newest},
                              {"release", BACKSTAY_VERSION}});
  spdlog::info("run begins job={} run={:016x} ranks={} node={} nodes={} dir={}", state_.name,
               hello.run, hello.ranks, hello.node, hello.nodes, state_.dir);
}

void Job::scanned(const Scanned& event) {
  scanned_ = looked_ = event.versions.ok();
  if (!scanned_) scan_error_ = event.versions.error();
  state_.finished = event.finished;
  if (event.versions.ok()) {
    for (const StoredVersion& stored : *event.versions) {
      state_.newest = std::max(state_.newest, stored.version);
      const bool exists = stored.level != Level::none || !stored.damage.empty();
      if (exists || stored.in_doubt) state_.versions.found(stored, Where::disk);
    }
  }
  admit_waiting(scanned_ ? Status() : Status(event.versions.error()));
}

void Job::admit_waiting(const Status& opened) {
  for (const Newcomer& newcomer : std::exchange(waiting_, {})) {
    const Status status = opened.ok() ? admit(newcomer) : opened;
    if (status.ok()) continue;
    state_.outbox.send(newcomer.connection,
                       wire::Failure{status.error().code(), status.error().message()});
    state_.outbox.close(newcomer.connection);
  }
}

}  // namespace backstay::agent
