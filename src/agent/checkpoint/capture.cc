#include "agent/checkpoint/capture.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/checkpoint/older.h"
#include "agent/disk/links.h"
#include "base/failpoint.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

// Of a rank that writes streams; more at once would only be taken from the others.
constexpr std::uint32_t streams_wanted_max = 64;

std::uint32_t buffers_for(std::uint64_t bytes, std::uint32_t buffer_bytes) {
  return static_cast<std::uint32_t>((bytes + buffer_bytes - 1) / buffer_bytes);
}

}  // namespace

MemoryVersion& Capture::filling_version() {
  MemoryVersion* version = state_.in_memory(filling_->version);
  BACKSTAY_CHECK(version != nullptr);
  return *version;
}

std::optional<Status> Capture::receive(const RankLink& link, const wire::Message& message) {
  if (const auto* begins = std::get_if<wire::Begin>(&message)) return begin(link, *begins);
  if (const auto* wanted = std::get_if<wire::More>(&message)) return more(link, *wanted);
  if (const auto* chunks = std::get_if<wire::Filled>(&message)) return filled(link, *chunks);
  if (const auto* older = std::get_if<wire::Kept>(&message)) return kept(link, *older);
  if (const auto* ended = std::get_if<wire::End>(&message)) return end(link, *ended);
  const auto* given_up = std::get_if<wire::Abandon>(&message);
  if (given_up == nullptr) return std::nullopt;
  heard(link.rank, *given_up);
  return Status();
}

Result<Capture::RankProgress*> Capture::join(const RankLink& link, VersionNumber version,
                                             std::uint64_t bytes) {
  const auto refuse = [&](const Error& why) -> Result<RankProgress*> {
    state_.outbox.send(link.connection, wire::Captured{version, why.code(), why.message()});
    return nullptr;
  };
  state_.forget_refusals();  // the program goes on without what it could not use
  if (!state_.lost.empty()) {
    return refuse(Error(Code::rank_lost, "a rank of this run has died; restart the job"));
  }
  if (filling_ && version > filling_->version) leave_streams("the ranks have gone on without it");
  if (!filling_ && version == given_up_) return refuse(given_up_why_);
  if (version > format::version_max) return refuse(Error(Code::too_large, used_up()));
  if (!filling_) BACKSTAY_TRY(start(version, bytes));
  if (version != filling_->version) {
    return Error(Code::state, fmt::format("rank {} begins version {} while version {} is taken",
                                          link.rank, version, filling_->version));
  }
  answered(link.rank);  // a rank that begins has left the older version
  return &filling_->ranks[link.rank];
}

Status Capture::begin(const RankLink& link, const wire::Begin& begin) {
  BACKSTAY_ASSIGN(RankProgress* const rank, join(link, begin.version, begin.object_bytes));
  if (rank == nullptr) return {};
  if (rank->begun) return Error(Code::state, "begin was sent twice for one version");
  if (begin.object_bytes < rank->received_bytes) {
    return Error(Code::invalid, fmt::format("rank {} announces {} bytes and has handed over {}",
                                            link.rank, begin.object_bytes, rank->received_bytes));
  }
  const std::uint64_t left = begin.object_bytes - rank->received_bytes;
  const std::uint64_t buffers = (left / state_.pool.buffer_bytes()) + 1;
  if (buffers > UINT32_MAX) return Error(Code::too_large, "the object is too large");
  rank->begun = true;
  rank->object_bytes = begin.object_bytes;
  rank->wanted = buffers_for(left, state_.pool.buffer_bytes());
  filling_version().object_bytes[link.rank] = begin.object_bytes;
  filling_version().captures[link.rank].begin_ns = state_.clock.wall_ns();
  state_.make_room_at_home(link, rank->wanted);
  grant();
  return {};
}

// The rank writes streams: it does not know its object's length yet.
Status Capture::more(const RankLink& link, const wire::More& more) {
  if (more.buffers == 0) return Error(Code::invalid, "a rank asks for no buffer");
  const std::uint64_t needed = 2 * std::uint64_t{state_.local_ranks};
  if (state_.pool.count() < needed) {
    const std::string why = fmt::format(
        "streams need two buffers of the pool for each rank of the node, and it has {} for {} "
        "ranks: make pool.size_mib larger, or pool.buffer_mib smaller",
        state_.pool.count(), state_.local_ranks);
    state_.outbox.send(link.connection, wire::Captured{more.version, Code::unsupported, why});
    return {};
  }
  BACKSTAY_ASSIGN(RankProgress* const rank, join(link, more.version, state_.pool.buffer_bytes()));
  if (rank == nullptr) return {};
  if (rank->begun) return Error(Code::state, "more after begin");
  rank->wanted =
      std::min(rank->wanted + std::min(more.buffers, streams_wanted_max), streams_wanted_max);
  grant();
  return {};
}

// Pinned before the version begins: what it needs must not make room for it.
Status Capture::kept(const RankLink& link, const wire::Kept& kept) {
  VersionPin pin(state_.versions, kept.base, PinReason::base);
  const auto base = find_base(state_, kept.base);
  BACKSTAY_ASSIGN(RankProgress* const rank, join(link, kept.version, kept.left));
  if (rank == nullptr) return {};
  if (rank->begun || kept.base >= kept.version) {
    return Error(Code::state, "kept after begin, or of a newer version");
  }
  auto may_need =
      base.ok() ? needs_on(state_, *base) : Result<std::vector<format::Need>>(base.error());
  if (!may_need.ok()) {
    abort(may_need.error());
    return {};
  }
  MemoryVersion& version = filling_version();
  version.base = std::move(pin);
  version.may_need = std::move(*may_need);
  version.whole = false;
  for (const wire::KeptChunk& chunk : kept.chunks) {
    BACKSTAY_ASSIGN(OlderChunk older, keep(*base, link.rank, chunk, rank->received_bytes));
    rank->received_bytes += chunk.length;
    version.older.push_back(std::move(older));
  }
  return {};
}

std::string Capture::used_up() const {
  return fmt::format(
      "the numbers of versions end at {}, and job {} has a version {}: give the job "
      "another name, or remove that version with 'backstay rm' and restart the job",
      format::version_max, state_.name, state_.newest);
}

Status Capture::start(VersionNumber version, std::uint64_t bytes) {
  if (version <= state_.newest) {
    return Error(Code::state, fmt::format("version {} is not newer than version {}, the newest of "
                                          "job {}",
                                          version, state_.newest, state_.name));
  }
  failpoint("capture.begin");
  output_.retry_failed();
  filling_ = Filling{};
  filling_->version = version;
  // Ranks save about the same: a guess that costs nothing if it is wrong.
  output_.open(output_.begin(version), bytes * state_.local_ranks);
  return {};
}

// The last buffer of streams need not be full: what follows begins in one of its own.
bool Capture::fits(const RankProgress& progress, const wire::ChunkInPool& chunk) const {
  const std::uint64_t left =
      progress.begun ? progress.object_bytes - progress.received_bytes : UINT64_MAX;
  const std::uint64_t most = std::min<std::uint64_t>(state_.pool.buffer_bytes(), left);
  return chunk.length > 0 && chunk.length <= most && (!progress.begun || chunk.length == most) &&
         chunk.object_offset == progress.received_bytes;
}

Status Capture::filled(const RankLink& link, const wire::Filled& filled) {
  if (!filling_ || filling_->version != filled.version) return {};  // given up meanwhile
  const auto at = filling_->ranks.find(link.rank);
  if (at == filling_->ranks.end()) return Error(Code::state, "filled before begin");
  RankProgress& progress = at->second;
  MemoryVersion& version = filling_version();
  for (const wire::ChunkInPool& chunk : filled.chunks) {
    if (progress.granted.erase(chunk.buffer) == 0 || !fits(progress, chunk)) {
      return Error(Code::invalid, fmt::format("rank {} handed over a buffer that it does not own, "
                                              "that is not full, or out of order",
                                              link.rank));
    }
    progress.received_bytes += chunk.length;
    output_.take_in(version, link.rank, chunk);
  }
  return {};
}

Status Capture::end(const RankLink& link, const wire::End& end) {
  if (!filling_ || filling_->version != end.version) return {};  // given up meanwhile
  const auto at = filling_->ranks.find(link.rank);
  if (at == filling_->ranks.end() || !at->second.begun || at->second.ended) {
    return Error(Code::state, "end without begin");
  }
  if (at->second.received_bytes != at->second.object_bytes) {
    return Error(Code::invalid,
                 fmt::format("rank {} announced {} bytes and handed over {}", link.rank,
                             at->second.object_bytes, at->second.received_bytes));
  }
  take_back(at->second.granted);
  at->second.ended = true;
  ObjectCapture& capture = filling_version().captures[link.rank];
  capture.end_ns = state_.clock.wall_ns();
  capture.stopped_ns = end.stopped_ns;
  capture.snapshot = end.snapshot;
  failpoint("capture.end");
  end_if_all_have();
  return {};
}

void Capture::end_if_all_have() {
  if (!filling_ || filling_->all_ended || filling_->version == held_) return;
  const auto& ranks = filling_->ranks;
  if (ranks.size() == state_.local_ranks &&
      std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.second.ended; })) {
    all_ended();
  }
}

void Capture::let_go() {
  held_ = 0;
  end_if_all_have();
}

void Capture::give_up(VersionNumber version, const Error& why) {
  held_ = 0;
  if (filling_ && filling_->version == version && !filling_->all_ended) return abort(why);
  if (version <= state_.newest) return;  // it was begun, and has ended
  state_.newest = version;               // no other version gets its number
  given_up_ = version;
  given_up_why_ = why;
}

void Capture::all_ended() {
  filling_->all_ended = true;
  MemoryVersion& version = filling_version();
  version.captured_ns = state_.clock.wall_ns();
  if (version.failed && !version.whole) return abort(*version.failed);
  if (!version.failed) output_.seal(version);
  if (version.whole) captured();  // else once it is safe on the disk
}

// On several nodes nothing takes back what this one has prepared. The others' ranks may wait for
// ours, and not for what their nodes have: an agent there may have died.
void Capture::prepared(VersionNumber version) {
  if (!filling_ || filling_->version != version || state_.nodes == 1) return;
  filling_version().base.release();
  captured();
}

void Capture::captured() {
  MemoryVersion& version = filling_version();
  const VersionNumber number = filling_->version;
  version.captured = true;
  filling_.reset();
  failpoint("capture.captured");
  state_.send_to_all(wire::Captured{number, Code::ok, unreported_.take(state_)});
  output_.record_captured(version);
  drop_superseded();
  state_.versions.changed(number);
}

void Capture::drop_superseded() {
  std::vector<VersionNumber> older;
  VersionNumber newest_captured = 0;
  for (const auto& [number, version] : state_.memory) {
    if (version.captured || state_.is_local(version)) newest_captured = number;
  }
  for (const auto& [number, version] : state_.memory) {
    const bool done = state_.is_safe(version) || version.failed;
    if (number < newest_captured && done) older.push_back(number);
  }
  for (const VersionNumber number : older) {
    const MemoryVersion& version = state_.memory.at(number);
    if (version.failed) state_.store.post(AbortVersion{number, version.info.node});
    state_.release(number);
    state_.versions.changed(number);
  }
}

// The rank touches the buffers of the version that was given up no more.
void Capture::answered(Rank rank) {
  if (const auto node = unanswered_.extract(rank); !node.empty()) take_back(node.mapped());
}

// It has heard that the version was given up; or it gives it up itself, and then writes no more.
void Capture::heard(Rank rank, const wire::Abandon& given_up) {
  answered(rank);
  if (!filling_ || filling_->version != given_up.version || !filling_->ranks.contains(rank)) return;
  RankProgress& progress = filling_->ranks.at(rank);
  take_back(progress.granted);
  if (given_up.code != Code::ok && !progress.ended)
    return abort(Error(given_up.code, fmt::format("rank {}: {}", rank, given_up.message)));
  leave_streams(fmt::format("rank {} has given it up", rank));
}

// What ranks have written to streams is in no checkpoint. Another rank may hear of that first.
void Capture::leave_streams(const std::string& why) {
  if (!filling_ || collecting()) return;
  abort(Error(Code::state, fmt::format("version {} had streams only: {}", filling_->version, why)));
}

void Capture::take_back(std::set<std::uint32_t>& buffers) {
  for (const std::uint32_t buffer : buffers) state_.pool.give_back(buffer);
  buffers.clear();
}

// A process that has ended writes nowhere.
void Capture::rank_lost(Rank rank) {
  answered(rank);
  if (filling_ && filling_->ranks.contains(rank)) take_back(filling_->ranks.at(rank).granted);
  if (!filling_ || filling_->all_ended) return;
  abort(Error(Code::rank_lost,
              fmt::format("rank {} died while version {} was taken", rank, filling_->version)));
}

void Capture::abort(const Error& why) {
  if (!filling_) return;
  const VersionNumber number = filling_->version;
  given_up_ = number;
  given_up_why_ = why;
  for (auto& [rank, progress] : filling_->ranks) {
    if (!progress.granted.empty()) unanswered_[rank] = std::move(progress.granted);
  }
  filling_.reset();
  state_.send_to_all(wire::Captured{number, why.code(), why.message()});
  output_.give_up(number, why);
}

// --- events of the store -----------------------------------------------------------------------

void Capture::local(const StoredVersion& stored) {
  output_.local(stored);
  failpoint("commit.6");
  if (filling_ && filling_->version == stored.version) captured();
  drop_superseded();
}

void Capture::on(const VersionFailed& event) {
  if (!output_.on(event)) return;  // given up meanwhile
  if (filling_ && filling_->version == event.version && !filling_version().whole) {
    return abort(event.error);
  }
  state_.versions.changed(event.version);
  drop_superseded();
}

bool Capture::collecting() const {
  return filling_ &&
         (filling_->all_ended ||
          std::ranges::any_of(filling_->ranks, [](const auto& r) { return r.second.begun; }));
}

// --- buffers -----------------------------------------------------------------------------------

void Capture::grant() {
  if (!filling_) return;
  std::map<Rank, wire::Grant> grants;
  for (bool any = true; any;) {
    any = false;
    for (auto& [rank, progress] : filling_->ranks) {
      if (progress.wanted == 0) continue;
      const auto link = state_.links.find(rank);
      if (link == state_.links.end()) continue;
      const auto buffer = state_.take_buffer(link->second.home);
      if (!buffer) break;
      progress.granted.insert(*buffer);
      --progress.wanted;
      grants[rank].buffers.push_back(*buffer);
      any = true;
    }
  }
  for (auto& [rank, all] : grants) {
    for (std::size_t at = 0; at < all.buffers.size(); at += wire::list_entries_max) {
      const std::size_t end = std::min(all.buffers.size(), at + wire::list_entries_max);
      state_.outbox.send(state_.links.at(rank).connection,
                         wire::Grant{filling_->version,
                                     {all.buffers.begin() + static_cast<std::ptrdiff_t>(at),
                                      all.buffers.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
  }
  if (starved()) {
    Error why(Code::no_space, "the pool is full and nothing in it can be written to disk");
    if (const Error* failure = output_.failure()) why = *failure;
    abort(why.context("the pool is full with data that cannot be written"));
  }
}

bool Capture::waits_for_buffers() const {
  return filling_ && std::any_of(filling_->ranks.begin(), filling_->ranks.end(),
                                 [](const auto& rank) { return rank.second.wanted > 0; });
}

// No buffer will ever come back: waiting would not end.
bool Capture::starved() const {
  if (!waits_for_buffers() || output_.store_has_buffers() || !unanswered_.empty()) return false;
  if (output_.failure() == nullptr)
    return false;  // another job of this node holds the pool for now
  return std::all_of(filling_->ranks.begin(), filling_->ranks.end(),
                     [](const auto& rank) { return rank.second.granted.empty(); });
}

}  // namespace backstay::agent
