#include "agent/restart/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/group/remote_files.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "store/needed_files.h"

namespace backstay::agent {

namespace {

std::vector<Rank> ranks_of(const std::vector<Restore::Participant>& participants) {
  std::vector<Rank> ranks;
  for (const auto& participant : participants) ranks.push_back(participant.rank);
  return ranks;
}

}  // namespace

Restore::Restore(JobState& state, const std::vector<Participant>& participants,
                 const wire::Restart& what)
    : state_(state),
      parts_(parts_of(participants)),
      wanted_(what.version),
      whole_job_(true),
      sources_(state, ranks_of(participants), what),
      reader_(state, [this](auto&&... what_arrived) { arrived(what_arrived...); }) {}

Restore::Restore(JobState& state, const std::vector<Participant>& participants,
                 const wire::Fetch& what)
    : state_(state),
      parts_(parts_of(participants)),
      what_(what),
      wanted_(what.version),
      whole_job_(false),
      sources_(state, ranks_of(participants), {what.version, what.run}),
      reader_(state, [this](auto&&... what_arrived) { arrived(what_arrived...); }) {}

std::vector<Restore::Part> Restore::parts_of(const std::vector<Participant>& participants) {
  std::vector<Part> parts(participants.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].who = participants[i];
  return parts;
}

void Restore::start() {
  if (phase_ == Phase::finding) find();  // else a participant has gone before its turn
}

bool Restore::done() const { return phase_ == Phase::done && reader_.idle(); }

bool Restore::take_end() { return phase_ == Phase::done && !std::exchange(end_taken_, true); }

std::optional<VersionOfRun> Restore::brought_back() const {
  if (phase_ != Phase::done || !succeeded_ || !whole_job_) return std::nullopt;
  return VersionOfRun{version_, run_};
}

// On several nodes the parts may be those of nodes that had other numbers, and copies.
Parts Restore::base() const {
  if (!whole_job_) return {};
  Parts base;
  for (const Part& part : parts_) {
    const ManifestPtr found = part_on_disk(part);
    if (found == nullptr || !may_be_base(*found)) return {};
    if (std::ranges::find(base, found) == base.end()) base.push_back(found);
  }
  return base;
}

// The one with the participant's object; null: this node's disk does not have it, or not yet.
ManifestPtr Restore::part_on_disk(const Part& part) const {
  if (part.source.place == Place::local) return part.manifest;
  const ManifestPtr newest = part.in_pool() ? state_.newest_part : nullptr;
  const bool fits = newest && newest->version == version_ && newest->run == run_ &&
                    newest->find(part.who.rank) != nullptr;
  return fits ? newest : nullptr;
}

// One node alone could not copy parts of several to shared storage, nor several nodes protect the
// version of one. On several nodes the record must be here: ranks that ask for the level may hear
// what other nodes know, and this node could not keep the version.
bool Restore::may_be_base(const format::Manifest& part) const {
  if (state_.nodes == 1 || part.nodes == 1) return state_.nodes == part.nodes;
  const VersionRow* row = state_.versions.find(version_);
  const bool local = row != nullptr && row->good() && row->is_of(run_);
  return local && state_.around != nullptr &&
         state_.around->may_be_needed({version_, run_, part.node});
}

std::optional<VersionOfRun> Restore::read_from_others() const {
  const auto is_other = [](const Part& part) { return part.source.place == Place::replica; };
  const bool others = std::ranges::any_of(parts_, is_other);
  const bool read = phase_ == Phase::done && succeeded_ && others;
  return read ? std::optional(VersionOfRun{version_, run_}) : std::nullopt;
}

bool Restore::includes(ConnectionId connection) const {
  return phase_ != Phase::done &&
         std::any_of(parts_.begin(), parts_.end(),
                     [connection](const Part& part) { return part.who.connection == connection; });
}

Restore::Part* Restore::part_of(ConnectionId connection) {
  for (Part& part : parts_) {
    if (part.who.connection == connection) return &part;
  }
  return nullptr;
}

bool Restore::all(bool Part::*flag) const {
  return std::all_of(parts_.begin(), parts_.end(), [flag](const Part& part) { return part.*flag; });
}

// --- the plan ------------------------------------------------------------------------------------

void Restore::find() {
  phase_ = Phase::finding;
  sources_.find([this](const std::variant<SourceSelector::Found, SourceSelector::Nothing>& answer) {
    if (phase_ != Phase::finding) return;  // a participant has gone meanwhile
    if (const auto* nothing = std::get_if<SourceSelector::Nothing>(&answer)) {
      if (version_ == 0) version_ = wanted_;
      return finish(nothing->code(), nothing->message());
    }
    found(std::get<SourceSelector::Found>(answer));
  });
}

void Restore::found(const SourceSelector::Found& found) {
  BACKSTAY_CHECK(phase_ == Phase::finding && found.sources.size() == parts_.size());
  version_ = found.version.first;
  run_ = found.version.second;
  reader_.open(found);
  unlocated_ = parts_.size();
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    parts_[index].source = parts_[index].read_from = found.sources[index];
    parts_[index].manifest = nullptr;
  }
  const std::uint64_t round = ++rounds_;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    if (round != rounds_ || phase_ != Phase::finding) return;  // one has failed
    if (parts_[index].in_pool()) {
      if (--unlocated_ == 0) plan();
      continue;
    }
    reader_.locate(parts_[index].source, parts_[index].who.rank,
                   [this, index](const Result<Located>& manifest) { located(index, manifest); });
  }
}

void Restore::located(std::size_t index, const Result<Located>& manifest) {
  if (phase_ != Phase::finding) return;
  if (!manifest.ok()) return trouble(index, manifest.error());
  parts_[index].read_from = manifest->source;
  parts_[index].manifest = manifest->manifest;
  if (--unlocated_ == 0) plan();
}

void Restore::plan() {
  if (!know_objects()) return;
  pinned_ = std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.in_pool(); });
  if (pinned_) ++state_.memory.at(version_).pins;
  plan_reads();
  held_ = planned_.size() <= state_.buffers_available();
  announce();
  for (Part& part : parts_) {
    if (part.in_pool()) hand_out_from_memory(part);
  }
  queue_chunks();
  maybe_deliver();
}

// How many ranks saved the version, and how long each participant's object is.
bool Restore::know_objects() {
  for (const Part& part : parts_) {
    saved_ranks_ = part.manifest ? part.manifest->ranks : state_.memory.at(version_).info.ranks;
    if (!whole_job_ || saved_ranks_ == state_.ranks) continue;
    finish(Code::rank_count,
           fmt::format("version {} was saved by {} ranks and this run has {}; start it with {} "
                       "ranks",
                       version_, saved_ranks_, state_.ranks, saved_ranks_));
    return false;
  }
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    if (!know_object(index)) return false;
  }
  return true;
}

bool Restore::know_object(std::size_t index) {
  Part& part = parts_[index];
  const Rank rank = part.who.rank;
  std::optional<std::uint64_t> bytes;
  if (part.in_pool()) {
    const auto& objects = state_.memory.at(version_).object_bytes;
    if (const auto object = objects.find(rank); object != objects.end()) bytes = object->second;
  } else if (const auto* object = part.manifest->find(rank)) {
    bytes = object->bytes;
  }
  if (!bytes && rank >= saved_ranks_) {
    finish(Code::not_found,
           fmt::format("version {} was saved by {} ranks, 0 to {}: there is no rank {}", version_,
                       saved_ranks_, saved_ranks_ - 1, rank));
    return false;
  }
  if (!bytes) {
    trouble(index, Error(Code::not_found,
                         fmt::format("there is no object of rank {} in this place", rank)));
    return false;
  }
  if (part.manifest && part.manifest->chunk_bytes_max > state_.pool.buffer_bytes()) {
    finish(Code::unsupported,
           fmt::format("version {} was saved with buffers of {} MiB; set pool.buffer_mib to at "
                       "least that and restart the agent",
                       version_, (part.manifest->chunk_bytes_max + (1u << 20) - 1) >> 20));
    return false;
  }
  part.object_bytes = *bytes;
  part.begin = what_.begin_in(*bytes);
  part.end = what_.end_in(*bytes);
  part.chunks = part.verified = 0;
  part.restored = part.proceeds = false;
  part.out.clear();
  return true;
}

void Restore::plan_reads() {
  planned_.clear();
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    Part& part = parts_[index];
    if (part.in_pool()) continue;
    for (const format::ChunkEntry& chunk :
         part.manifest->chunks_of(*part.manifest->find(part.who.rank))) {
      if (!part.wants(chunk.object_offset, chunk.length)) continue;
      planned_.push_back({index, chunk});
      ++part.chunks;
    }
  }
  // One file of a disk after the other, those of different agents at once. The last chunk of every
  // object first: with its table a rank knows where the others belong.
  const auto order = [this](const Planned& planned) {
    const Part& part = parts_[planned.part];
    const format::ChunkEntry& chunk = planned.chunk;
    const bool last = chunk.object_offset + chunk.length == part.object_bytes;
    const Place place = part.source.place;
    const bool replica = place == Place::replica;
    return std::tuple(place, replica ? 0 : part.read_from.node, !last,
                      replica ? FileOf() : store::file_with(*part.manifest, chunk),
                      chunk.segment_offset);
  };
  std::sort(planned_.begin(), planned_.end(),
            [&](const Planned& a, const Planned& b) { return order(a) < order(b); });
}

Place Restore::farthest() const {
  Place place = Place::pool;
  for (const Part& part : parts_) place = std::max(place, part.source.place);
  return place;
}

void Restore::announce() {
  BACKSTAY_CHECK(phase_ == Phase::finding && unlocated_ == 0);
  phase_ = Phase::verifying;
  ++attempt_;
  began_ns_ = state_.clock.monotonic_ns();
  const char* from = name_of(farthest());
  spdlog::log(whole_job_ ? spdlog::level::info : spdlog::level::debug,
              "{} job={} version={} from={} ranks={}", whole_job_ ? "restart" : "fetch",
              state_.name, version_, from, parts_.size());
  if (whole_job_) state_.record("restart_begin", {{"version", version_}, {"from", from}});
  const bool may_be_base = !base().empty();
  for (const Part& part : parts_) {
    state_.outbox.send(part.who.connection,
                       wire::Plan{version_, part.object_bytes, part.in_pool(), Code::ok, "",
                                  attempt_, saved_ranks_, may_be_base});
  }
}

// --- taking a plan back --------------------------------------------------------------------------

// Ends the present plan; `next` goes on once every rank has its own bytes again.
void Restore::withdraw(std::function<void()> next) {
  reader_.close();
  to_read_.clear();
  after_withdrawal_ = std::move(next);
  const bool exchanging =
      whole_job_ && held_ && (phase_ == Phase::verifying || phase_ == Phase::ready);
  phase_ = Phase::withdrawing;
  for (Part& part : parts_) {
    part.holds = exchanging && !part.in_pool() && !part.has_left;
    if (part.holds) state_.outbox.send(part.who.connection, wire::Withdraw{version_, attempt_});
  }
  maybe_withdrawn();
}

void Restore::withdrawn(ConnectionId connection, const wire::Withdrawn& withdrawn) {
  Part* part = part_of(connection);
  if (phase_ != Phase::withdrawing || part == nullptr || withdrawn.attempt != attempt_) return;
  part->holds = false;
  maybe_withdrawn();
}

void Restore::maybe_withdrawn() {
  if (std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.holds; })) {
    return;
  }
  BACKSTAY_CHECK(phase_ == Phase::withdrawing && after_withdrawal_);
  release_all();
  std::exchange(after_withdrawal_, nullptr)();
}

// --- endings -----------------------------------------------------------------------------------

void Restore::trouble(std::size_t part, const Error& why) {
  if (phase_ == Phase::delivering) {
    return finish(Code::io, fmt::format("version {}: {}; it was good a moment ago, the regions are "
                                        "undefined",
                                        version_, why.message()));
  }
  withdraw([this, part, why] {
    sources_.failed(part, parts_[part].source, why);
    find();
  });
}

void Restore::release_all() {
  reader_.close();
  to_read_.clear();
  for (const auto& [buffer, index] : in_pool_) state_.pool.give_back(buffer);
  in_pool_.clear();
  planned_.clear();
  for (Part& part : parts_) part.out.clear();
  if (!std::exchange(pinned_, false)) return;
  MemoryVersion* version = state_.in_memory(version_);
  BACKSTAY_CHECK(version != nullptr && version->pins > 0);
  --version->pins;
  if (version->pins == 0 && version->dropping) state_.release(version_);
}

void Restore::record_end(Code code, const std::string& message) const {
  if (!whole_job_ || code == Code::none) return;   // no restart, or the first run of a job
  if (code == Code::rank_count && wanted_ == 0) {  // not over: the ranks go on with fetches
    return state_.record("redistribute", {{"version", version_}, {"saved_ranks", saved_ranks_}});
  }
  if (code != Code::ok) {
    return state_.record("restart_failed",
                         {{"version", version_}, {"code", code_name(code)}, {"why", message}});
  }
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.end - part.begin;
  const std::uint64_t passed_ns = state_.clock.monotonic_ns() - began_ns_;
  state_.record("restored", {{"version", version_},
                             {"from", name_of(farthest())},
                             {"bytes", bytes},
                             {"seconds", 1e-9 * static_cast<double>(passed_ns)}});
}

void Restore::finish(Code code, const std::string& message) {
  const bool delivering = phase_ == Phase::delivering;
  phase_ = Phase::done;
  succeeded_ = code == Code::ok;
  record_end(code, message);
  release_all();
  if (code == Code::none) {
    spdlog::info("nothing to restart from job={}", state_.name);
  } else if (code != Code::ok) {
    spdlog::warn("restart failed job={} code={} why=\"{}\"", state_.name, code_name(code), message);
  }
  for (const Part& part : parts_) {
    failpoint("restart.answer");
    if (delivering) {
      state_.outbox.send(part.who.connection, wire::Captured{version_, code, message});
    } else {
      state_.outbox.send(part.who.connection,
                         wire::Plan{version_, 0, false, code, message, attempt_, saved_ranks_});
    }
  }
}

}  // namespace backstay::agent
