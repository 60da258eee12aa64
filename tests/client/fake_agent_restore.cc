// The fake agent's restarts and fetches.
#include <algorithm>

#include "base/checksum.h"
#include "fake_agent.h"

namespace backstay::client::test {

std::deque<std::uint64_t> FakeAgent::offsets_of(const Buffer& object) const {
  const std::uint64_t begin = what_.begin_in(object.size());
  const std::uint64_t end = what_.end_in(object.size());
  std::deque<std::uint64_t> out;
  for (std::uint64_t at = 0; at < end; at += options_.buffer_bytes)
    if (at + options_.buffer_bytes > begin) out.push_back(at);
  return out;
}

std::size_t FakeAgent::chunks_stored() const {
  std::size_t chunks = 0;
  for (const auto& [version, ranks] : objects) {
    for (const auto& [rank, object] : ranks) chunks += chunks_of(object.size());
  }
  return chunks;
}

// One after the other, as the real one does.
void FakeAgent::next_fetch() {
  if (fetches_.empty() || !returning_.empty()) return;
  const auto [rank, what] = fetches_.front();
  fetches_.pop_front();
  fetching_ = true;
  restart({rank}, what);
}

void FakeAgent::restart(const std::set<Rank>& ranks, const wire::Fetch& what) {
  what_ = what;
  returning_.clear();
  for (const Rank rank : ranks) returning_[rank];
  plan();
}

void FakeAgent::plan() {
  returning_version_ = 0;
  for (const auto& [version, ranks] : objects) {
    if (damaged_.count(version) == 0 && (what_.version == 0 || what_.version == version)) {
      returning_version_ = version;
    }
  }
  delivering_ = false;
  if (end_with != Code::ok) return finish_restore(end_with, "not able to, for a test");
  if (returning_version_ == 0) {
    const bool corrupt = !damaged_.empty();
    return finish_restore(corrupt              ? Code::corrupt
                          : what_.version != 0 ? Code::not_found
                                               : Code::none,
                          "nothing to restart from");
  }
  std::size_t chunks = 0;
  for (auto& [rank, mine] : returning_) {
    for (const auto& [out, at] : mine.out) free_.push_back(out);
    mine = Returning{};
    const auto object = objects[returning_version_].find(fetching_ ? what_.rank : rank);
    if (object == objects[returning_version_].end()) {
      return finish_restore(options_.lacking, "rank " + std::to_string(rank) + "'s object is gone");
    }
    mine.object = &object->second;
    mine.to_send = offsets_of(*mine.object);
    mine.chunks = mine.to_send.size();
    chunks += mine.chunks;
    send(*link_of(rank), wire::Plan{returning_version_, mine.object->size(), false, Code::ok, "", 0,
                                    0, may_be_base});
  }
  held_ = !options_.never_hold && chunks <= free_.size();
  for (auto& [rank, mine] : returning_) {
    if (options_.reverse_chunks) std::reverse(mine.to_send.begin(), mine.to_send.end());
  }
  send_chunks();
}

void FakeAgent::send_chunks() {
  const auto& damaged = delivering_ ? options_.damage_late : options_.damage;
  const bool damage = damaged.count(returning_version_) != 0;
  for (auto& [rank, mine] : returning_) {
    while (!mine.to_send.empty() && !free_.empty()) {
      const std::uint64_t at = mine.to_send.front();
      mine.to_send.pop_front();
      const std::uint32_t index = free_.back();
      free_.pop_back();
      mine.out[index] = at;
      ++chunks_sent;
      const auto length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(options_.buffer_bytes, mine.object->size() - at));
      std::memcpy(buffer(index), mine.object->data() + at, length);
      const std::uint64_t sum = checksum(Bytes(buffer(index), length));
      if (damage && at == 0) *buffer(index) ^= std::byte{1};
      send(*link_of(rank), wire::Chunks{returning_version_, held_, {{index, length, at, sum}}});
    }
  }
}

void FakeAgent::verified(Link& link, const wire::Verified& verified) {
  const auto at = returning_.find(link.hello.rank);
  if (at == returning_.end() || verified.version != returning_version_) return;
  if (!verified.good) {
    if (delivering_) return finish_restore(Code::io, "damaged while it was delivered");
    damaged_.insert(returning_version_);
    return withdraw([this] { plan(); });
  }
  for (const std::uint32_t index : verified.buffers) {
    if (at->second.out.count(index) == 0) complain("verified a buffer that was not handed out");
    ++at->second.verified;
    if (held_) continue;
    if (verified.placed) at->second.placed.insert(at->second.out[index]);
    at->second.out.erase(index);
    free_.push_back(index);
  }
  if (delivering_) return send_chunks();
  const bool all = std::all_of(returning_.begin(), returning_.end(), [&](const auto& one) {
    return one.second.verified == one.second.chunks;
  });
  if (!all) return send_chunks();
  if (!several_nodes_ || fetching_) return deliver();
  for (auto& [rank, mine] : returning_) send(*link_of(rank), wire::Ready{returning_version_, 0});
}

void FakeAgent::proceed(Link& link, const wire::Proceed& proceed) {
  const auto at = returning_.find(link.hello.rank);
  if (at == returning_.end() || proceed.version != returning_version_) return;
  if (!proceed.good) {
    return withdraw([this] { finish_restore(Code::again, "given up by the ranks"); });
  }
  at->second.proceeds = true;
  if (std::ranges::all_of(returning_, [](auto& one) { return one.second.proceeds; })) deliver();
}

wire::Candidate FakeAgent::newest_below(const wire::Candidates& asked) {
  wire::Candidate best{0, 0, Code::none, "nothing here", 0};
  for (const auto& [version, ranks] : objects) {
    if (hide.count(version) != 0) continue;
    const RunId run = runs.count(version) != 0 ? runs[version] : 1;
    if (asked.below != 0 && std::pair(version, run) >= std::pair(asked.below, asked.below_run)) {
      continue;
    }
    const auto saved = saved_ranks.find(version);
    best = {version, run, Code::ok, "",
            saved == saved_ranks.end() ? static_cast<std::uint32_t>(ranks.size()) : saved->second};
  }
  for (const auto& [version, why] : set_aside) {
    if (version <= best.version || (asked.below != 0 && version >= asked.below)) continue;
    best = {version, 0, Code::corrupt, why, 0};
  }
  return best;
}

void FakeAgent::deliver() {
  delivering_ = true;
  for (auto& [rank, mine] : returning_) {
    send(*link_of(rank), wire::Deliver{returning_version_});
    if (!held_) mine.to_send = offsets_of(*mine.object);
    std::erase_if(mine.to_send, [&was = mine.placed](auto at) { return was.contains(at); });
  }
  send_chunks();
}

// No rank's buffers are reused before the ranks have their own bytes back.
void FakeAgent::withdraw(std::function<void()> next) {
  if (fetching_) return next();  // exchanges nothing
  after_withdrawal_ = std::move(next);
  for (auto& [rank, mine] : returning_) {
    Link* link = link_of(rank);
    if (link == nullptr) continue;
    withdrawing_.insert(rank);
    send(*link, wire::Withdraw{returning_version_, 0});
  }
  returning_version_ = 0;  // late answers do not count
}

void FakeAgent::withdrawn(Rank rank) {
  if (withdrawing_.erase(rank) == 0) return complain("withdrawn without being asked");
  if (withdrawing_.empty()) std::exchange(after_withdrawal_, nullptr)();
}

void FakeAgent::restored(Link& link, const wire::Restored& restored) {
  const auto at = returning_.find(link.hello.rank);
  if (at == returning_.end()) return;
  if (restored.code != Code::ok) return finish_restore(restored.code, "a rank failed");
  at->second.restored = true;
  if (std::all_of(returning_.begin(), returning_.end(),
                  [](auto& o) { return o.second.restored; })) {
    finish_restore(Code::ok, "");
  }
}

void FakeAgent::finish_restore(Code code, const std::string& message) {
  for (auto& [rank, mine] : returning_) {
    for (const auto& [out, at] : mine.out) free_.push_back(out);
    Link* link = link_of(rank);
    if (link == nullptr) continue;
    if (delivering_) {
      send(*link, wire::Captured{returning_version_, code, message});
    } else {
      const std::uint32_t saved = code == Code::rank_count ? 2 : 0;
      send(*link, wire::Plan{returning_version_, 0, false, code, message, 0, saved});
    }
  }
  returning_.clear();
  delivering_ = false;
  next_fetch();
}

// The rank touches the buffers of its version that was given up no more, or gives it up itself.

}  // namespace backstay::client::test
