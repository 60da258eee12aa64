#include "client/capture.h"

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "client/attended.h"

namespace backstay::client {

namespace {

// Each message costs time and wakes the agent; a late message keeps the disk waiting.
constexpr std::size_t chunks_per_message = 8;

class Filler {
 public:
  Filler(Connection& agent, ObjectSource& source, VersionNumber version)
      : agent_(agent),
        source_(source),
        offset_(source.handed_over()),
        left_(source.object_bytes() - offset_) {
    filled_.version = version;
  }

  // Fills one granted buffer, unless the object is complete. Errors: of the source, agent_lost.
  Status fill(std::uint32_t index) {
    if (left_ == 0) return {};
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(left_, agent_.buffer_bytes()));
    BACKSTAY_ASSIGN(const auto memory, agent_.buffer(index, length));
    BACKSTAY_ASSIGN(const std::uint64_t sum, source_.read_next(memory));
    filled_.chunks.push_back({index, length, offset_, sum});
    offset_ += length;
    left_ -= length;
    if (filled_.chunks.size() >= chunks_per_message) return hand_over();
    return {};
  }

  Status hand_over() {
    if (filled_.chunks.empty()) return {};
    BACKSTAY_TRY(agent_.send(filled_));
    filled_.chunks.clear();
    failpoint("rank.filled");
    return {};
  }

  bool complete() const { return left_ == 0; }

 private:
  Connection& agent_;
  ObjectSource& source_;
  wire::Filled filled_;
  std::uint64_t offset_;
  std::uint64_t left_;
};

Status tell_kept(Connection& agent, const ObjectSource& source, VersionNumber version) {
  const ObjectSource::Kept kept = source.kept();
  if (kept.base == 0) return {};
  const std::uint64_t left = source.object_bytes() - source.handed_over();
  // The agent hears of the base also where no chunk of it is kept here.
  for (std::size_t at = 0; at == 0 || at < kept.chunks.size(); at += wire::list_entries_max) {
    const std::size_t end = std::min(kept.chunks.size(), at + wire::list_entries_max);
    BACKSTAY_TRY(agent.send(wire::Kept{version,
                                       kept.base,
                                       left,
                                       {kept.chunks.begin() + static_cast<std::ptrdiff_t>(at),
                                        kept.chunks.begin() + static_cast<std::ptrdiff_t>(end)}}));
  }
  return {};
}

Status fill_all(Filler& filler, const wire::Grant& grant, Attended& attended) {
  for (const std::uint32_t index : grant.buffers) {
    BACKSTAY_TRY(filler.fill(index));
    attended.now();
  }
  return filler.hand_over();
}

// The agent tells the other ranks. A process that has ended is a death to the agent, too.
void give_up(Connection& agent, VersionNumber version, const Error& why) {
  if (why.code() == Code::rank_lost) return agent.leave_silently();
  if (agent.usable()) (void)agent.send(wire::Abandon{version, why.code(), why.message()});
}

}  // namespace

Status capture(Connection& agent, ObjectSource& source, VersionNumber version,
               std::string& warning) {
  Filler filler(agent, source, version);
  Attended attended(agent, [&source] { return source.attend(); });
  failpoint("rank.begin");
  BACKSTAY_TRY(tell_kept(agent, source, version));
  BACKSTAY_TRY(agent.send(wire::Begin{version, source.object_bytes()}));
  while (true) {
    BACKSTAY_ASSIGN(const wire::Message message, agent.receive());
    if (const auto* outcome = std::get_if<wire::Captured>(&message)) {
      if (outcome->version != version) continue;  // of a version that was given up before
      if (outcome->code != Code::ok) {
        failpoint("rank.given_up");
        BACKSTAY_TRY(agent.send(wire::Abandon{version}));  // the granted buffers are the agent's
        return Error(outcome->code, outcome->message);
      }
      if (!filler.complete()) return Error(Code::internal, "captured before the object was whole");
      warning = outcome->message;
      return {};
    }
    const auto* grant = std::get_if<wire::Grant>(&message);
    if (grant == nullptr || grant->version != version || filler.complete()) continue;
    if (Status filled = fill_all(filler, *grant, attended); !filled.ok()) {
      give_up(agent, version, filled.error());
      return filled;
    }
    if (!filler.complete()) continue;
    source.complete();
    failpoint("rank.end");
    const auto stop = source.stop().value_or(ObjectSource::Stop{});
    BACKSTAY_TRY(agent.send(wire::End{version, stop.ns, stop.snapshot}));
    failpoint("rank.ended");
  }
}

}  // namespace backstay::client
