#include "agent/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
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
      levels_(state_),
      output_(state_),
      capture_(state_, output_),
      writers_(state_, output_),
      home_files_(state_),
      durability_(state_, levels_),
      files_(*this),
      commit_coordinator_(state_, files_, *this),
      blocker_publisher_(state_),
      request_publisher_(state_, *page_) {
  state_.store.post(ScanJob{});
}

// --- messages of ranks -------------------------------------------------------------------------

Status Job::receive(ConnectionId connection, const wire::Message& message) {
  if (writers_.includes(connection)) return writer_message(connection, message);
  const RankLink* link = state_.link_of(connection);
  if (link == nullptr) return Error(Code::state, "hello comes first");
  const RankLink rank = *link;
  Status status;
  if (auto taken = capture_.receive(rank, message)) {
    status = std::move(*taken);
  } else if (auto heard = cut_message(rank.rank, message)) {
    status = std::move(*heard);
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

void Job::set_around(RemoteFiles* around) {
  state_.around = around;
  answer_candidates();
}

Status Job::restart(const RankLink& link, const wire::Restart& restart) {
  capture_.leave_streams("the ranks restart");
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
  const bool restarts = !restores_.empty() && restores_.front()->includes(link.connection);
  if (refuse.version != 0 && restarts) return restores_.front()->refuse(link.connection, refuse);
  if (refuse.version != 0) return;  // of a restart that is over
  state_.take_refusal(refuse.code, refuse.message);
}

// The last rank on this node has left.
void Job::run_ends() {
  const char* how = state_.refused            ? "refused"
                    : !state_.lost.empty()    ? "failed"
                    : page_->stop_requested() ? "stopped"
                                              : "finished";
  state_.finished = how == std::string_view("finished");
  state_.record("run_end", {{"how", how}});
}

void Job::reap_restores() {
  while (!restores_.empty()) {
    if (restores_.front()->take_end()) ended(*restores_.front());
    if (!restores_.front()->done()) return;
    restores_.pop_front();
    if (!restores_.empty()) restores_.front()->start();
  }
}

void Job::ended(const Restore& restore) {
  if (const auto read = restore.read_from_others()) state_.elsewhere.restarted_from = *read;
  const auto version = restore.brought_back();
  if (version && redundancy_) redundancy_->brought_back(*version);
  if (version) {
    state_.went_on_from = VersionPin(state_.versions, version->first, PinReason::went_on_from);
    state_.brought_back = restore.base();
  }
}

void Job::disconnected(ConnectionId connection, bool goodbye) {
  levels_.forget(connection);
  waiting_.remove_if([connection](const Newcomer& one) { return one.connection == connection; });
  asking_.remove_if([connection](const auto& entry) { return entry.first == connection; });
  if (writers_.includes(connection)) {
    writers_.disconnected(connection, goodbye);
    home_files_.disconnected(connection);
    return carry_out();
  }
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
  if (CutRelay* relay = cuts()) relay->left(rank, goodbye);
  carry_out_cuts();
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
    output_.on(*written);
  } else if (const auto* sealed = std::get_if<VersionSealed>(&event)) {
    if (redundancy_ && sealed->stored.record.run == state_.run) {
      redundancy_->sealed(store::held_segment(*sealed->manifest));
    }
    commit_coordinator_.on(*sealed);
    capture_.prepared(sealed->stored.version);
  } else if (const auto* recorded = std::get_if<VersionRecorded>(&event)) {
    if (redundancy_) redundancy_->recorded(recorded->stored.record);
    commit_coordinator_.on(*recorded);
  } else if (const auto* unrecorded = std::get_if<RecordFailed>(&event)) {
    commit_coordinator_.on(*unrecorded);
  } else if (const auto* failed = std::get_if<VersionFailed>(&event)) {
    writers_.run_began() ? writers_.on(*failed) : capture_.on(*failed);
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
  home_files_.on(event);
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
                   network_pause_.ends_ns(), home_files_.wakes_at_ns(),
                   cuts_ ? cuts_->wakes_at_ns() : no_deadline});
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
  // While files are not at home yet, this agent brings them, and the lock keeps others from it.
  const bool brings = state_.not_home.waiting > 0;
  durability_.set_live((runs() || writers_.any() || brings) && whole);
  durability_.stand_still(collecting() || output_.draining());
  if (network_pause_.update(collecting(), state_.clock.monotonic_ns()) &&
      commit_coordinator_.run_membership()) {
    commit_coordinator_.run_membership()->pause(network_pause_.on());
  }
  capture_.grant();
  writers_.grant();
  home_files_.pump();
  if (CutRelay* relay = cuts()) relay->pump();
  carry_out_cuts();
  tell_facts();
  if (!restores_.empty()) restores_.front()->pump();
  reap_restores();  // what comes from other agents comes past on()
  carry_out();
}

void Job::tell_facts() {
  std::vector<Blocker> blockers;
  if (redundancy_) blockers = redundancy_->blockers();
  blocker_publisher_.tell(commit_coordinator_.run_membership(), std::move(blockers));
  request_publisher_.tell(commit_coordinator_.run_membership());
}

bool Job::busy() const {
  return output_.draining() || !restores_.empty() || !waiting_.empty() || home_files_.busy();
}

// A captured version that could not be written is here only: the job stays open for it.
bool Job::unused() const {
  return !has_processes() && restores_.empty() && !taking_versions() && copying() == 0 &&
         !home_files_.busy() &&
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
  return capture_.waits_for_buffers() || writers_.waits_for_buffers() ||
         (!restores_.empty() && restores_.front()->waits_for_buffers());
}

}  // namespace backstay::agent
