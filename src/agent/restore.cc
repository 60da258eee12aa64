#include "agent/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/failpoint.h"
#include "base/log.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

const char* name_of(Place place) {
  return place == Place::pool ? "pool" : place == Place::local ? "local" : "durable";
}

}  // namespace

Restore::Restore(JobState& state, const std::vector<Participant>& participants,
                 const wire::Restart& what)
    : state_(state),
      parts_(parts_of(participants)),
      wanted_(what.version),
      below_(what.below),
      whole_job_(true) {}

Restore::Restore(JobState& state, const std::vector<Participant>& participants,
                 const wire::Fetch& what)
    : state_(state),
      parts_(parts_of(participants)),
      what_(what),
      wanted_(what.version),
      below_(0),
      whole_job_(false) {}

std::vector<Restore::Part> Restore::parts_of(const std::vector<Participant>& participants) {
  std::vector<Part> parts(participants.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].who = participants[i];
  return parts;
}

void Restore::start() {
  if (phase_ == Phase::choosing) choose();  // else a participant has gone before its turn
}

bool Restore::done() const { return phase_ == Phase::done && reading_.empty() && orphans_.empty(); }

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

// --- choosing ----------------------------------------------------------------------------------

// The nearest place that has the version and was not tried in vain.
std::optional<Place> Restore::place_of(VersionNumber number) const {
  const auto has = [number](const std::map<VersionNumber, StoredVersion>& versions) {
    const auto found = versions.find(number);
    return found != versions.end() && found->second.good();
  };
  const auto held = state_.memory.find(number);
  const bool in_pool = held != state_.memory.end() && held->second.captured && held->second.whole &&
                       !held->second.dropping;
  const std::pair<Place, bool> places[] = {{Place::pool, in_pool},
                                           {Place::local, has(state_.disk)},
                                           {Place::durable, has(state_.durable)}};
  for (const auto& [place, there] : places) {
    if (there && tried_.count({number, place}) == 0) return place;
  }
  return std::nullopt;
}

std::map<VersionNumber, StoredVersion>& Restore::versions_here() {
  return place_ == Place::durable ? state_.durable : state_.disk;
}

void Restore::post_here(Command command) {
  if (place_ != Place::durable) return state_.store.post(std::move(command));
  state_.store.post_drain(std::move(command));
}

void Restore::choose() {
  phase_ = Phase::choosing;
  std::set<VersionNumber> known;
  for (const auto& [number, version] : state_.memory) known.insert(number);
  for (const auto* versions : {&state_.disk, &state_.durable}) {
    for (const auto& [number, stored] : *versions) {
      known.insert(number);
      if (!stored.good() && damage_.empty()) {
        damage_ = fmt::format("version {}: {}", number, stored.damage);
      }
    }
  }
  std::set<VersionNumber> candidates;
  for (const VersionNumber number : known) {
    if (place_of(number)) candidates.insert(number);
  }
  if (below_ != 0) candidates.erase(candidates.lower_bound(below_), candidates.end());
  if (wanted_ != 0 && candidates.count(wanted_) == 0) {
    const bool hurt = tried_.lower_bound({wanted_, Place::pool}) !=
                          tried_.lower_bound({wanted_ + 1, Place::pool}) ||
                      state_.disk.count(wanted_) != 0 || state_.durable.count(wanted_) != 0;
    return finish(hurt ? Code::corrupt : Code::not_found,
                  fmt::format("version {} of job {} {}", wanted_, state_.name,
                              hurt ? "is damaged: " + damage_ : std::string("does not exist")));
  }
  if (candidates.empty()) {
    if (state_.durable_error) {  // nobody knows what is there: not the time to begin anew
      return finish(state_.durable_error->code(), state_.durable_error->message());
    }
    if (damage_.empty()) return finish(Code::none, "no version of this job exists yet");
    return finish(Code::corrupt,
                  fmt::format("no version of job {} can be brought back; {}. Run 'backstay verify "
                              "{}' for the whole list",
                              state_.name, damage_, state_.name));
  }
  version_ = wanted_ != 0 ? wanted_ : *candidates.rbegin();
  place_ = *place_of(version_);
  if (place_ == Place::pool) return serve_from_memory(state_.memory.at(version_));
  kept_here_ = true;
  post_here(LoadManifest{version_, state_.node});
}

bool Restore::known_ranks(std::uint32_t ranks, const std::map<Rank, std::uint64_t>& object_bytes) {
  saved_ranks_ = ranks;
  if (whole_job_ && ranks != state_.ranks) {
    finish(Code::rank_count,
           fmt::format("version {} was saved by {} ranks and this run has {}; start it with {} "
                       "ranks",
                       version_, ranks, state_.ranks, ranks));
    return false;
  }
  for (Part& part : parts_) {
    const auto object = object_bytes.find(part.who.rank);
    if (object == object_bytes.end()) {
      finish(Code::not_found,
             part.who.rank < ranks
                 ? fmt::format("version {} has no object of rank {} on this node", version_,
                               part.who.rank)
                 : fmt::format("version {} was saved by {} ranks, 0 to {}: there is no rank {}",
                               version_, ranks, ranks - 1, part.who.rank));
      return false;
    }
    part.object_bytes = object->second;
    part.begin = what_.begin_in(part.object_bytes);
    part.end = what_.end_in(part.object_bytes);
    part.chunks = part.verified = 0;
    part.restored = false;
    part.out.clear();
  }
  return true;
}

void Restore::announce() {
  phase_ = Phase::verifying;
  ++attempt_;
  began_ns_ = state_.clock.monotonic_ns();
  spdlog::log(whole_job_ ? spdlog::level::info : spdlog::level::debug,
              "{} job={} version={} from={} ranks={}", whole_job_ ? "restart" : "fetch",
              state_.name, version_, name_of(place_), parts_.size());
  if (whole_job_) {
    state_.record("restart_begin", {{"version", version_}, {"from", name_of(place_)}});
  }
  for (const Part& part : parts_) {
    state_.outbox.send(part.who.connection,
                       wire::Plan{version_, part.object_bytes, place_ == Place::pool, Code::ok, "",
                                  attempt_, saved_ranks_});
  }
}

void Restore::serve_from_memory(MemoryVersion& version) {
  if (!known_ranks(version.info.ranks, version.object_bytes)) return;
  ++version.pins;
  pinned_ = true;
  held_ = true;
  announce();
  for (Part& part : parts_) {
    wire::Chunks list{version_, true, {}, attempt_};
    for (std::size_t index = 0; index < version.chunks.size(); ++index) {
      const HeldChunk& chunk = version.chunks[index];
      if (chunk.rank != part.who.rank) continue;
      if (!part.wants(chunk.in_pool.object_offset, chunk.in_pool.length)) continue;
      part.out[chunk.in_pool.buffer] = index;
      ++part.chunks;
      list.chunks.push_back(chunk.in_pool);
      if (list.chunks.size() < wire::list_entries_max) continue;
      state_.outbox.send(part.who.connection, list);
      list.chunks.clear();
    }
    if (!list.chunks.empty()) state_.outbox.send(part.who.connection, std::move(list));
  }
  maybe_deliver();
}

void Restore::on(const ManifestLoaded& event, Place place) {
  if (phase_ != Phase::choosing || event.version != version_ || place != place_) return;
  if (!event.manifest.ok() && event.manifest.error().code() == Code::again) {
    versions_here().erase(version_);  // retention was quicker than we
    return choose();
  }
  if (!event.manifest.ok()) return trouble(event.manifest.error());
  plan_from_disk(*event.manifest);
}

void Restore::plan_from_disk(const format::Manifest& manifest) {
  std::map<Rank, std::uint64_t> object_bytes;
  for (const format::ObjectEntry& object : manifest.objects) {
    object_bytes[object.rank] = object.bytes;
  }
  if (!known_ranks(manifest.ranks, object_bytes)) return;
  if (manifest.chunk_bytes_max > state_.pool.buffer_bytes()) {
    return finish(Code::unsupported,
                  fmt::format("version {} was saved with buffers of {} MiB; set pool.buffer_mib to "
                              "at least that and restart the agent",
                              version_, (manifest.chunk_bytes_max + (1u << 20) - 1) >> 20));
  }
  planned_.clear();
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const format::ObjectEntry* object = manifest.find(parts_[index].who.rank);
    BACKSTAY_CHECK(object != nullptr);
    for (const format::ChunkEntry& chunk : manifest.chunks_of(*object)) {
      if (!parts_[index].wants(chunk.object_offset, chunk.length)) continue;
      planned_.push_back({index, chunk});
      ++parts_[index].chunks;
    }
  }
  // The last chunk of every object first: with its table a rank knows where the others belong.
  const auto order = [this](const Planned& planned) {
    const format::ChunkEntry& chunk = planned.chunk;
    const bool last = chunk.object_offset + chunk.length == parts_[planned.part].object_bytes;
    return std::pair(!last, chunk.segment_offset);
  };
  std::sort(planned_.begin(), planned_.end(),
            [&](const Planned& a, const Planned& b) { return order(a) < order(b); });
  held_ = planned_.size() <= state_.buffers_available();
  announce();
  queue_chunks();
  maybe_deliver();
}

// --- chunks from the tier ----------------------------------------------------------------------

void Restore::queue_chunks() {
  to_read_.clear();
  for (std::size_t index = 0; index < planned_.size(); ++index) to_read_.push_back(index);
  for (Part& part : parts_) part.verified = 0;
  pump();
}

void Restore::pump() {
  if (phase_ != Phase::verifying && phase_ != Phase::delivering) return;
  while (!to_read_.empty()) {
    const Planned& planned = planned_[to_read_.front()];
    const auto buffer = state_.take_buffer(parts_[planned.part].who.home);
    if (!buffer) return;
    const std::uint64_t ticket = next_ticket_++;
    reading_[ticket] = to_read_.front();
    to_read_.pop_front();
    post_here(ReadChunk{version_, state_.node, *buffer, state_.pool.buffer(*buffer), planned.chunk,
                        ticket});
  }
}

void Restore::on(const ChunkRead& event) {
  if (orphans_.erase(event.ticket) != 0) return state_.pool.give_back(event.buffer);
  const auto at = reading_.find(event.ticket);
  if (at == reading_.end()) return;
  const std::size_t index = at->second;
  reading_.erase(at);
  if (!event.status.ok()) {
    state_.pool.give_back(event.buffer);
    return trouble(event.status.error());
  }
  const Planned& planned = planned_[index];
  Part& part = parts_[planned.part];
  part.out[event.buffer] = index;
  in_pool_[event.buffer] = index;
  hand_out(part, {event.buffer, planned.chunk.length, planned.chunk.object_offset,
                  planned.chunk.checksum});
}

void Restore::hand_out(Part& part, const wire::ChunkInPool& chunk) {
  state_.outbox.send(part.who.connection, wire::Chunks{version_, held_, {chunk}, attempt_});
}

// --- answers of the ranks ----------------------------------------------------------------------

Status Restore::verified(ConnectionId connection, const wire::Verified& verified) {
  Part* part = part_of(connection);
  // A rank may still answer for a plan that was given up meanwhile, even of the same version.
  if (part == nullptr || verified.attempt != attempt_) return {};
  if (phase_ != Phase::verifying && phase_ != Phase::delivering) return {};
  for (const std::uint32_t buffer : verified.buffers) {
    if (part->out.erase(buffer) == 0) {
      return Error(Code::invalid, "a rank verified a buffer that it was not given");
    }
    ++part->verified;
    if (!held_) {
      in_pool_.erase(buffer);
      state_.pool.give_back(buffer);
    }
  }
  if (!verified.good) {
    trouble(Error(Code::corrupt, fmt::format("rank {}: {}", part->who.rank, verified.why)));
    return {};
  }
  pump();
  maybe_deliver();
  return {};
}

void Restore::maybe_deliver() {
  if (phase_ != Phase::verifying) return;
  if (!std::all_of(parts_.begin(), parts_.end(),
                   [](const Part& part) { return part.verified == part.chunks; })) {
    return;
  }
  failpoint("restart.verified");
  phase_ = Phase::delivering;
  for (const Part& part : parts_) {
    state_.outbox.send(part.who.connection, wire::Deliver{version_});
  }
  if (!held_) queue_chunks();
}

void Restore::refuse(ConnectionId connection, const wire::Refuse& refuse) {
  if (phase_ != Phase::verifying || part_of(connection) == nullptr) return;
  withdraw([this, refuse] { finish(refuse.code, refuse.message); });
}

void Restore::restored(ConnectionId connection, const wire::Restored& restored) {
  Part* part = part_of(connection);
  if (phase_ != Phase::delivering || part == nullptr) return;
  if (restored.code != Code::ok) {
    return finish(restored.code, "a rank could not take its data back; the regions are undefined");
  }
  part->restored = true;
  if (std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.restored; })) {
    finish(Code::ok, "");
  }
}

void Restore::disconnected(ConnectionId connection) {
  Part* gone = part_of(connection);
  if (gone == nullptr || phase_ == Phase::done) return;
  gone->has_left = true;
  gone->holds = false;
  const auto lost = [this, rank = gone->who.rank] {
    finish(Code::rank_lost, fmt::format("rank {} died during the restart", rank));
  };
  if (phase_ == Phase::delivering) return lost();
  if (phase_ != Phase::withdrawing) return withdraw(lost);
  after_withdrawal_ = lost;
  maybe_withdrawn();
}

// --- taking a plan back --------------------------------------------------------------------------

// Ends the present plan; `next` goes on once every rank has its own bytes again.
void Restore::withdraw(std::function<void()> next) {
  stop_reading();
  after_withdrawal_ = std::move(next);
  const bool exchanging =
      whole_job_ && phase_ == Phase::verifying && held_ && place_ != Place::pool;
  phase_ = Phase::withdrawing;
  for (Part& part : parts_) {
    part.holds = exchanging && !part.has_left;
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
  release_all();
  std::exchange(after_withdrawal_, nullptr)();
}

// --- endings -----------------------------------------------------------------------------------

void Restore::trouble(const Error& why) {
  damage_ = fmt::format("version {}: {}", version_, why.message());
  if (phase_ == Phase::delivering) {
    return finish(Code::io, damage_ + "; it was good a moment ago, the regions are undefined");
  }
  withdraw([this, why] {
    note_trouble(why);
    choose();
  });
}

void Restore::note_trouble(const Error& why) {
  if (place_ == Place::pool) {
    spdlog::warn("damaged in the pool job={} {}", state_.name, damage_);
    state_.release(version_);
    tried_.insert({version_, place_});
  } else if (first_trouble_.emplace(std::pair(version_, place_), why.code()).second) {
    spdlog::warn("reads it a second time job={} {}", state_.name, damage_);
  } else {
    give_version_up(why);
  }
}

// It was read twice. Only damage that was found both times is for good.
void Restore::give_version_up(const Error& why) {
  tried_.insert({version_, place_});
  const bool lasting = is_damage(why.code()) && is_damage(first_trouble_.at({version_, place_}));
  state_.record(lasting ? "set_aside" : "skipped",
                {{"version", version_}, {"why", why.message()}, {"from", name_of(place_)}});
  if (!lasting) {
    spdlog::warn("skips it this time, as it cannot be read job={} {}", state_.name, damage_);
    return post_here(Doubt{version_});
  }
  if (const auto stored = versions_here().find(version_); stored != versions_here().end()) {
    stored->second.damage = why.message();
  }
  post_here(SetAside{version_, why.message()});
}

void Restore::stop_reading() {
  for (const auto& [ticket, index] : reading_) orphans_.insert(ticket);
  reading_.clear();
  to_read_.clear();
}

void Restore::release_all() {
  stop_reading();
  for (const auto& [buffer, index] : in_pool_) state_.pool.give_back(buffer);
  in_pool_.clear();
  planned_.clear();
  for (Part& part : parts_) part.out.clear();
  if (std::exchange(kept_here_, false)) post_here(DoneReading{});
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
                             {"from", name_of(place_)},
                             {"bytes", bytes},
                             {"seconds", 1e-9 * static_cast<double>(passed_ns)}});
}

void Restore::finish(Code code, const std::string& message) {
  const bool delivering = phase_ == Phase::delivering;
  phase_ = Phase::done;
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
