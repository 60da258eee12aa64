// The chunks of a restart: handed out from the pool or read, and what the ranks say of them.
#include <fmt/format.h>

#include <algorithm>

#include "agent/restart/restore.h"
#include "base/check.h"
#include "base/failpoint.h"

namespace backstay::agent {

namespace {

// Enough to keep a network busy, and few enough for a neighbour that many turn to.
constexpr std::size_t replica_reads_max = 16;

}  // namespace

// --- chunks --------------------------------------------------------------------------------------

void Restore::hand_out_from_memory(Part& part) {
  const MemoryVersion& version = state_.memory.at(version_);
  wire::Chunks list{version_, true, {}, attempt_};
  for (std::size_t index = 0; index < version.chunks.size(); ++index) {
    const HeldChunk& chunk = version.chunks[index];
    if (chunk.object != part.who.rank) continue;
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

void Restore::queue_chunks() {
  to_read_.clear();
  for (std::size_t index = 0; index < planned_.size(); ++index) {
    if (!planned_[index].placed) to_read_.push_back(index);
  }
  pump();
}

void Restore::pump() {
  if (phase_ != Phase::verifying && phase_ != Phase::delivering) return;
  peers_busy_ = false;
  read_more();
}

void Restore::read_more() {
  while (!to_read_.empty()) {
    const Planned& planned = planned_[to_read_.front()];
    const Part& part = parts_[planned.part];
    const bool replica = part.source.place == Place::replica;
    if (replica && (peers_busy_ || reader_.reading() >= replica_reads_max)) return;
    const auto buffer = state_.take_buffer(part.who.home);
    if (!buffer) return;
    const std::size_t index = to_read_.front();
    to_read_.pop_front();
    reader_.read(part.read_from, *part.manifest, planned.chunk, *buffer, index);
  }
}

void Restore::arrived(std::size_t index, std::uint32_t buffer, const Source& source,
                      const Status& status) {
  if (!status.ok()) {
    state_.pool.give_back(buffer);
    return unread(index, source, status.error());
  }
  const Planned& planned = planned_[index];
  Part& part = parts_[planned.part];
  part.out[buffer] = index;
  in_pool_[buffer] = index;
  state_.outbox.send(part.who.connection,
                     wire::Chunks{version_,
                                  held_,
                                  {{buffer, planned.chunk.length, planned.chunk.object_offset,
                                    planned.chunk.checksum}},
                                  attempt_});
  if (source.place == Place::replica) read_more();
}

void Restore::unread(std::size_t index, const Source& source, const Error& why) {
  const std::size_t number = planned_[index].part;
  Part& part = parts_[number];
  if (source.place == Place::replica && why.code() == Code::again) {
    to_read_.push_back(index);
    peers_busy_ = true;
    return;
  }
  if (source == part.read_from) {
    const auto other = sources_.instead(number, part.source, why);
    if (!other) return trouble(number, why);
    part.source = part.read_from = *other;
  }
  to_read_.push_front(index);
  read_more();
}

// --- answers of the ranks ----------------------------------------------------------------------

Status Restore::verified(ConnectionId connection, const wire::Verified& verified) {
  Part* part = part_of(connection);
  // A rank may still answer for a plan that was given up meanwhile, even of the same version.
  if (part == nullptr || verified.attempt != attempt_) return {};
  if (phase_ != Phase::verifying && phase_ != Phase::delivering) return {};
  for (const std::uint32_t buffer : verified.buffers) {
    const auto given = part->out.find(buffer);
    if (given == part->out.end()) {
      return Error(Code::invalid, "a rank verified a buffer that it was not given");
    }
    const std::size_t index = given->second;
    part->out.erase(given);
    ++part->verified;
    if (!held(*part)) {
      planned_[index].placed = verified.good && verified.placed;
      in_pool_.erase(buffer);
      state_.pool.give_back(buffer);
    }
  }
  if (!verified.good) {
    trouble(static_cast<std::size_t>(part - parts_.data()),
            Error(Code::corrupt, fmt::format("rank {}: {}", part->who.rank, verified.why)));
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
  if (!whole_job_ || state_.nodes == 1) return deliver();
  phase_ = Phase::ready;
  for (const Part& part : parts_) {
    state_.outbox.send(part.who.connection, wire::Ready{version_, attempt_});
  }
}

void Restore::proceed(ConnectionId connection, const wire::Proceed& proceed) {
  Part* part = part_of(connection);
  if (phase_ != Phase::ready || part == nullptr || proceed.attempt != attempt_) return;
  if (!proceed.good) {
    return withdraw([this] { finish(Code::again, "ranks of other nodes cannot restart from it"); });
  }
  part->proceeds = true;
  if (all(&Part::proceeds)) deliver();
}

// No rank's memory is touched before all of it is known to be good.
void Restore::deliver() {
  BACKSTAY_CHECK(phase_ == Phase::verifying || phase_ == Phase::ready);
  BACKSTAY_CHECK(std::ranges::all_of(parts_, [](const Part& p) { return p.verified == p.chunks; }));
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
  if (all(&Part::restored)) finish(Code::ok, "");
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

}  // namespace backstay::agent
