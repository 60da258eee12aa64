#include "agent/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/job/job_status.h"
#include "agent/restart/candidate.h"
#include "base/log.h"
#include "base/machine.h"
#include "format/names.h"

namespace backstay::agent {

Job::Job(std::string name, std::string dir, Pool& pool, Outbox& outbox, StoreLink& store,
         const Clock& clock, std::unique_ptr<ControlPage> page)
    : state_{.name = std::move(name),
             .dir = std::move(dir),
             .pool = pool,
             .outbox = outbox,
             .store = store,
             .events = store,
             .clock = clock},
      page_(std::move(page)),
      levels_(state_, [this](VersionNumber version) { return version_text(*this, version); }),
      capture_(state_),
      durability_(state_,
                  [this](VersionNumber version) { return levels_.wanted_durable(version); }),
      files_(*this),
      commit_coordinator_(
          state_, files_,
          {.membership = [this](const tree::Membership& change) { membership(change); },
           .released = [this](std::uint64_t barrier, std::uint64_t) { released(barrier); },
           .reached =
               [this](NodeId member) {
                 if (state_.blockers.cut_off(member, std::nullopt)) levels_.changed();
                 if (redundancy_) redundancy_->reached(member);
                 if (DrainCoordinator* drain = durability_.around()) drain->reached(member);
               },
           .fact =
               [this](const tree::Fact& fact) {
                 blocker_publisher_.learn(fact);
                 request_publisher_.learn(fact);
               },
           .ticked = [this] { levels_.changed(); }}),
      blocker_publisher_(state_),
      request_publisher_(state_, *page_) {
  state_.store.post(ScanJob{});
}

// --- joining -----------------------------------------------------------------------------------

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

Status Job::hello(ConnectionId connection, const wire::Hello& hello) {
  BACKSTAY_TRY(check(hello));
  if (scan_error_) return *scan_error_;
  if (!scanned_) {
    waiting_.emplace_back(connection, hello);
    return {};
  }
  return admit(connection, hello);
}

Status Job::admit(ConnectionId connection, const wire::Hello& hello) {
  if (hello.run != state_.run) {
    BACKSTAY_ASSIGN(const bool begun, begin_run(hello));
    if (!begun) {
      waiting_.emplace_back(connection, hello);
      return {};
    }
  }
  return join(connection, hello);
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
  if (looking_) return false;
  if (!std::exchange(looked_, true)) {
    looking_ = true;
    state_.store.post(LookAgain{recorded_here()});
    return false;
  }
  if (opened_for_ != hello.run) {
    if (durability_.opening()) return Error(Code::busy, "another run of the job begins; try again");
    opened_for_ = hello.run;
    durability_.open({hello.durable_dir, std::max(hello.durable_every, 1u),
                      std::max(hello.durable_keep, 1u), hello.durable_bytes_per_s,
                      hello.drain_nodes_max});
  }
  if (durability_.opening()) return false;
  BACKSTAY_TRY(new_run(hello));
  looked_ = false;
  return true;
}

Status Job::join(ConnectionId connection, const wire::Hello& hello) {
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
  wire::Welcome welcome;
  welcome.release = BACKSTAY_VERSION;
  welcome.pool_bytes = state_.pool.bytes();
  welcome.buffer_bytes = state_.pool.buffer_bytes();
  welcome.home_first = link.home.first;
  welcome.home_count = link.home.count;
  welcome.newest = state_.newest;
  welcome.finished = state_.finished_before;
  welcome.address = commit_coordinator_.run_membership()->address();
  welcome.settings = settings_;
  state_.outbox.send(connection, std::move(welcome),
                     {state_.pool.descriptor(), page_->descriptor()});
  return {};
}

Status Job::new_run(const wire::Hello& hello) {
  std::optional<ParityShape> parity;
  if (!hello.parity.empty()) {
    BACKSTAY_ASSIGN(parity, check_parity(hello.parity, hello.nodes));
  }
  if (hello.nodes > 1 && !parity) BACKSTAY_TRY(check_replicas(hello.replicas, hello.nodes));
  set_around(nullptr);
  status_poll_.reset();
  durability_.alone();
  redundancy_.reset();
  state_.notes.clear();
  state_.write_failed.reset();
  redundancy_wants_ns_ = no_deadline;
  files_.forget();
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
  state_.refused.reset();
  state_.finished_before = std::exchange(finished_, false);
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
  state_.record("run_begin", {{"ranks", hello.ranks},
                              {"nodes", hello.nodes},
                              {"host", host_name()},
                              {"newest", state_.newest},
                              {"release", BACKSTAY_VERSION}});
  spdlog::info("run begins job={} run={:016x} ranks={} node={} nodes={} dir={}", state_.name,
               hello.run, hello.ranks, hello.node, hello.nodes, state_.dir);
  return {};
}

void Job::scanned(const Scanned& event) {
  scanned_ = looked_ = event.versions.ok();
  if (!scanned_) scan_error_ = event.versions.error();
  finished_ = event.finished;
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
  for (auto& [connection, hello] : std::exchange(waiting_, {})) {
    Status status = opened.ok() ? admit(connection, hello) : opened;
    if (status.ok()) continue;
    state_.outbox.send(connection, wire::Failure{status.error().code(), status.error().message()});
    state_.outbox.close(connection);
  }
}

// --- messages of ranks -------------------------------------------------------------------------

Status Job::receive(ConnectionId connection, const wire::Message& message) {
  const RankLink* link = state_.link_of(connection);
  if (link == nullptr) return Error(Code::state, "hello comes first");
  const RankLink rank = *link;
  Status status;
  if (const auto* begin = std::get_if<wire::Begin>(&message)) {
    state_.refused.reset();  // the program goes on without what it could not use
    status = capture_.begin(rank, *begin);
  } else if (const auto* filled = std::get_if<wire::Filled>(&message)) {
    status = capture_.filled(rank, *filled);
  } else if (const auto* end = std::get_if<wire::End>(&message)) {
    status = capture_.end(rank, *end);
  } else if (const auto* query = std::get_if<wire::Query>(&message)) {
    levels_.query(connection, query->version);
  } else if (const auto* await = std::get_if<wire::Await>(&message)) {
    levels_.await(connection, *await);
    durability_.consider();
  } else if (const auto* neighbours = std::get_if<wire::Neighbours>(&message)) {
    status = know(*neighbours);
  } else if (const auto* again = std::get_if<wire::Restart>(&message)) {
    status = restart(rank, *again);
  } else if (const auto* one = std::get_if<wire::Fetch>(&message)) {
    status = fetch(rank, *one);
  } else if (const auto* verified = std::get_if<wire::Verified>(&message)) {
    if (!restores_.empty()) status = restores_.front()->verified(connection, *verified);
  } else if (const auto* refuse = std::get_if<wire::Refuse>(&message)) {
    refused(rank, *refuse);
  } else if (const auto* restored = std::get_if<wire::Restored>(&message)) {
    if (!restores_.empty()) restores_.front()->restored(connection, *restored);
  } else if (const auto* withdrawn = std::get_if<wire::Withdrawn>(&message)) {
    if (!restores_.empty()) restores_.front()->withdrawn(connection, *withdrawn);
  } else if (const auto* proceed = std::get_if<wire::Proceed>(&message)) {
    if (!restores_.empty()) restores_.front()->proceed(connection, *proceed);
  } else if (const auto* candidates = std::get_if<wire::Candidates>(&message)) {
    asking_.emplace_back(connection, *candidates);
    answer_candidates();
  } else {
    return Error(Code::invalid, "a rank may not send this message");
  }
  reap_restores();
  carry_out();
  return status;
}

// What this node holds is known once its neighbours are.
void Job::answer_candidates() {
  if (state_.nodes > 1 && state_.around == nullptr) return;
  for (const auto& [connection, asked] : std::exchange(asking_, {})) {
    state_.outbox.send(connection, newest_candidate(state_, asked));
  }
}

void Job::set_around(const RemoteFiles* around) {
  state_.around = around;
  answer_candidates();
}

Status Job::restart(const RankLink& link, const wire::Restart& restart) {
  if (capture_.filling()) return Error(Code::state, "restart while a version is taken");
  if (!restarting_.emplace(link.rank, restart).second) {
    return Error(Code::state, "restart was sent twice");
  }
  refuse_incomplete_restart();
  if (restarting_.size() < state_.local_ranks) return {};
  std::vector<Restore::Participant> all;
  for (const auto& [rank, joined] : state_.links) {
    all.push_back({joined.connection, rank, joined.home});
  }
  const wire::Restart wanted = restarting_.begin()->second;
  restarting_.clear();
  restores_.push_back(std::make_unique<Restore>(state_, all, wanted));
  if (restores_.size() == 1) restores_.front()->start();
  return {};
}

// A rank that has died will not ask, so the others would wait without end, whether they asked
// before its death or after it.
void Job::refuse_incomplete_restart() {
  if (state_.lost.empty()) return;
  for (const auto& [rank, wanted] : std::exchange(restarting_, {})) {
    const std::string why = fmt::format("rank {} died during the restart", *state_.lost.begin());
    state_.outbox.send(state_.links.at(rank).connection,
                       wire::Plan{wanted.version, 0, false, Code::rank_lost, why});
  }
}

Status Job::fetch(const RankLink& link, const wire::Fetch& fetch) {
  for (const auto& restore : restores_) {
    if (restore->includes(link.connection))
      return Error(Code::state, "fetch before the last is over");
  }
  std::vector<Restore::Participant> one{{link.connection, fetch.rank, link.home}};
  restores_.push_back(std::make_unique<Restore>(state_, one, fetch));
  if (restores_.size() == 1) restores_.front()->start();
  return {};
}

// In a restart it is the rank's answer, else what all ranks have come to.
void Job::refused(const RankLink& link, const wire::Refuse& refuse) {
  if (!restores_.empty() && restores_.front()->includes(link.connection)) {
    return restores_.front()->refuse(link.connection, refuse);
  }
  if (refuse.version != 0) return;  // of a restart that is over
  state_.refused = {Error(refuse.code, refuse.message), state_.clock.monotonic_ns()};
  state_.record("refused", {{"code", code_name(refuse.code)}, {"why", refuse.message}});
}

// The last rank on this node has left.
void Job::run_ends() {
  const char* how = state_.refused            ? "refused"
                    : !state_.lost.empty()    ? "failed"
                    : page_->stop_requested() ? "stopped"
                                              : "finished";
  finished_ = how == std::string_view("finished");
  state_.record("run_end", {{"how", how}});
}

void Job::reap_restores() {
  while (!restores_.empty() && restores_.front()->done()) {
    if (const auto read = restores_.front()->read_from_others()) {
      state_.elsewhere.restarted_from = *read;
    }
    const auto version = restores_.front()->brought_back();
    if (version && redundancy_) redundancy_->brought_back(*version);
    restores_.pop_front();
    if (!restores_.empty()) restores_.front()->start();
  }
}

void Job::disconnected(ConnectionId connection, bool goodbye) {
  levels_.forget(connection);
  waiting_.remove_if([connection](const auto& entry) { return entry.first == connection; });
  asking_.remove_if([connection](const auto& entry) { return entry.first == connection; });
  const RankLink* link = state_.link_of(connection);
  if (link == nullptr) return;
  const auto [gone, rank, home, pid] = *link;
  state_.links.erase(rank);
  restarting_.erase(rank);
  state_.record("rank_left", {{"rank", rank}, {"lost", !goodbye}});
  for (const auto& restore : restores_) restore->disconnected(connection);
  if (!goodbye) {
    spdlog::warn("rank lost job={} rank={} pid={}", state_.name, rank, pid);
    state_.lost.insert(rank);
    refuse_incomplete_restart();
  }
  capture_.rank_lost(rank);
  reap_restores();
  if (state_.links.empty()) run_ends();
  carry_out();
}

// --- events of the store -----------------------------------------------------------------------

void Job::on(const Event& event) {
  if (const auto* found = std::get_if<Scanned>(&event)) {
    scanned(*found);
  } else if (const auto* now = std::get_if<Looked>(&event)) {
    looked(*now);
  } else if (const auto* written = std::get_if<ChunkWritten>(&event)) {
    capture_.on(*written);
  } else if (const auto* sealed = std::get_if<VersionSealed>(&event)) {
    if (redundancy_ && sealed->stored.record.run == state_.run) {
      redundancy_->sealed(held_of(*sealed));
    }
    state_.write_failed.reset();
    commit_coordinator_.on(*sealed);
  } else if (const auto* recorded = std::get_if<VersionRecorded>(&event)) {
    if (redundancy_) redundancy_->recorded(recorded->stored.record);
    commit_coordinator_.on(*recorded);
  } else if (const auto* unrecorded = std::get_if<RecordFailed>(&event)) {
    commit_coordinator_.on(*unrecorded);
  } else if (const auto* failed = std::get_if<VersionFailed>(&event)) {
    capture_.on(*failed);
  } else if (const auto* removed = std::get_if<Removed>(&event)) {
    for (const VersionNumber version : removed->stayed) {
      state_.versions.ordered(version, StoreOrder::remove, false);
    }
    for (const VersionNumber version : removed->versions) {
      state_.versions.removed(version, Where::disk);
    }
  } else if (const auto* loaded = std::get_if<ManifestLoaded>(&event)) {
    if (loaded->manifest.ok()) state_.versions.doubted(loaded->version, Where::disk, false);
    if (!restores_.empty()) restores_.front()->on(*loaded, Place::local);
  } else if (const auto* read = std::get_if<ChunkRead>(&event)) {
    BACKSTAY_CHECK(!restores_.empty());
    restores_.front()->on(*read);
  }
  reap_restores();
  carry_out();
  durability_.consider();
}

void Job::on_drain(const Event& event) {
  if (const auto* found = std::get_if<Scanned>(&event)) {
    if (durability_.on(*found) && !restores_.empty()) restores_.front()->durable_scanned();
    if (!durability_.opening()) admit_waiting(Status());
  } else if (const auto* loaded = std::get_if<ManifestLoaded>(&event)) {
    if (loaded->manifest.ok()) state_.versions.doubted(loaded->version, Where::shared, false);
    if (!restores_.empty()) restores_.front()->on(*loaded, Place::durable);
  } else if (const auto* read = std::get_if<ChunkRead>(&event)) {
    BACKSTAY_CHECK(!restores_.empty());
    restores_.front()->on(*read);
  } else {
    durability_.on(event);
  }
  reap_restores();
  carry_out();
  durability_.consider();
}

std::uint64_t Job::next_deadline_ns() const {
  if (commit_coordinator_.has_news()) return 0;
  const std::uint64_t settles = commit_coordinator_.settles_at_ns();
  const bool matters = settles != 0 && !waiting_.empty();
  return std::min({matters ? settles : no_deadline, redundancy_wants_ns_, status_poll_wants_ns_,
                   network_pause_.ends_ns()});
}

void Job::pump() {
  if (commit_coordinator_.has_news()) commit_coordinator_.progress();
  if (redundancy_) redundancy_wants_ns_ = redundancy_->pump();
  status_poll_wants_ns_ = status_poll_ ? status_poll_->pump() : no_deadline;
  if (!waiting_.empty() && scanned_ && !looking_ && !durability_.opening() && may_begin_run()) {
    admit_waiting(Status());
  }
  const bool whole =
      !commit_coordinator_.run_membership() || commit_coordinator_.run_membership()->lost().empty();
  durability_.set_live(runs() && whole);
  durability_.stand_still(capture_.filling() || capture_.draining());
  if (network_pause_.update(capture_.filling(), state_.clock.monotonic_ns()) &&
      commit_coordinator_.run_membership()) {
    commit_coordinator_.run_membership()->pause(network_pause_.on());
  }
  capture_.grant();
  tell_facts();
  if (!restores_.empty()) restores_.front()->pump();
  reap_restores();  // what comes from other agents comes past on()
  carry_out();
}

void Job::tell_facts() {
  std::vector<Blocker> blockers = commit_coordinator_.unrecorded();
  if (redundancy_) std::ranges::move(redundancy_->blockers(), std::back_inserter(blockers));
  blocker_publisher_.tell(commit_coordinator_.run_membership(), std::move(blockers));
  request_publisher_.tell(commit_coordinator_.run_membership());
}

bool Job::busy() const { return capture_.draining() || !restores_.empty() || !waiting_.empty(); }

// A captured version that could not be written is here only: the job stays open for it.
bool Job::unused() const {
  return !has_ranks() && restores_.empty() && !capture_.filling() && copying() == 0 &&
         std::all_of(state_.memory.begin(), state_.memory.end(),
                     [this](const auto& entry) { return state_.is_safe(entry.second); });
}

void Job::close() {
  levels_.close();
  while (!state_.memory.empty()) {
    const VersionNumber number = state_.memory.begin()->first;
    state_.release(number);
    BACKSTAY_CHECK(state_.memory.count(number) == 0);
  }
}

bool Job::waits_for_buffers() const {
  return capture_.waits_for_buffers() ||
         (!restores_.empty() && restores_.front()->waits_for_buffers());
}

}  // namespace backstay::agent
