#include "agent/redundancy/parity_sender.h"

#include <algorithm>

#include "base/log.h"

namespace backstay::agent {

void ParitySender::begun(VersionNumber version) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.first.version == version; });
  std::erase_if(out_, [&](const auto& entry) { return entry.first == version; });
}

void ParitySender::made(const Slice& slice, Lease lease, Bytes memory) {
  if (away_.contains(slice.to)) put_out(slice);
  if (is_out(slice)) return;
  Waiting waiting{std::move(lease), memory, clock_.monotonic_ns()};
  const auto asked = asked_.find(slice);
  if (asked == asked_.end()) {
    waiting_.insert_or_assign(slice, std::move(waiting));
    return;
  }
  const Asked by = asked->second;
  asked_.erase(asked);
  give(slice, by, std::move(waiting));
}

void ParitySender::asked(const Slice& slice, std::uint64_t ticket, std::uint64_t bytes,
                         bool may_come) {
  const Asked by{ticket, bytes, clock_.monotonic_ns()};
  away_.erase(slice.to);
  if (auto found = waiting_.extract(slice)) return give(slice, by, std::move(found.mapped()));
  if (!may_come || is_out(slice)) {
    return refuse(slice.to, ticket, Code::not_found, "no such parity is made here");
  }
  if (asked_.size() >= asked_max || !asked_.emplace(slice, by).second) {
    refuse(slice.to, ticket, Code::again, "too many are waiting");
  }
}

void ParitySender::give(const Slice& slice, const Asked& asked, Waiting waiting) {
  if (asked.bytes != waiting.memory.size()) {
    return refuse(slice.to, asked.ticket, Code::invalid,
                  "parity is made in other slices here (pool.buffer_mib must be the same on all "
                  "nodes)");
  }
  const Bytes memory = waiting.memory;
  peers_.offer(slice.to, asked.ticket, memory,
               callback_guard_(
                   [lease = std::move(waiting.lease)](const Status&) mutable { lease.reset(); }));
}

void ParitySender::refuse(NodeId to, std::uint64_t ticket, Code code, const char* why) {
  peers_.send(to, wire::peer::No{ticket, code, why});
}

template <typename Condition>
void ParitySender::refuse_if(Condition condition, const char* why) {
  std::erase_if(asked_, [&](const auto& entry) {
    if (!condition(entry.first, entry.second)) return false;
    refuse(entry.first.to, entry.second.ticket, Code::not_found, why);
    return true;
  });
}

void ParitySender::ended(VersionNumber version) {
  refuse_if([&](const Slice& slice, const Asked&) { return slice.version == version; },
            "no more of this parity is made here");
}

void ParitySender::forget(VersionNumber version) {
  ended(version);
  begun(version);
}

// It asks again, with other tickets, if it comes back.
void ParitySender::lost(NodeId peer) {
  away_.insert(peer);
  for (const auto& [slice, waiting] : waiting_) {
    if (slice.to == peer) put_out(slice);
  }
  std::erase_if(waiting_, [&](const auto& entry) { return entry.first.to == peer; });
  std::erase_if(asked_, [&](const auto& entry) { return entry.first.to == peer; });
}

void ParitySender::put_out(const Slice& slice) {
  if (!out_.insert({slice.version, slice.to}).second) return;
  spdlog::info(
      "parity that was made for another node is not asked for: it makes its own version={} node={}",
      slice.version, slice.to);
}

std::uint64_t ParitySender::pump(std::optional<VersionNumber> working) {
  const std::uint64_t now = clock_.monotonic_ns();
  std::uint64_t next = no_deadline;
  for (const auto& [slice, waiting] : waiting_) {
    if (now - waiting.since_ns >= patience_ns_) {
      put_out(slice);
    } else {
      next = std::min(next, waiting.since_ns + patience_ns_);
    }
  }
  std::erase_if(waiting_, [this](const auto& entry) { return is_out(entry.first); });
  // Slices of the current or a newer version will still be made.
  const auto comes = [&](const Slice& slice) { return working && *working <= slice.version; };
  refuse_if(
      [&](const Slice& slice, const Asked& asked) {
        return is_out(slice) || (!comes(slice) && now - asked.since_ns >= asked_patience_ns);
      },
      "it took too long");
  for (const auto& [slice, asked] : asked_) {
    if (!comes(slice)) next = std::min(next, asked.since_ns + asked_patience_ns);
  }
  return next;
}

}  // namespace backstay::agent
