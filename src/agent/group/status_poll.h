// What goes on at the other agents of a run, for a tool that looks (docs/protocol/peers.md,
// "Looking").
//
// Bounded in who is asked and in time: a member that is slow or dead is shown without an answer.
// Main loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/group/peers.h"
#include "agent/version/held_files.h"
#include "base/clock.h"
#include "tree/node_set.h"

namespace backstay::agent {

struct MemberSeen {
  enum class State { ok, no_answer, lost };
  NodeId node = 0;
  State state = State::no_answer;
  std::string why;
  wire::peer::Seen seen = {};
};

// Filled while answers come; complete once `done`.
struct Gathered {
  bool done = false;
  std::vector<MemberSeen> members;  // by number
  std::uint32_t left_out = 0;       // were not asked
};

class StatusPoll {
 public:
  static constexpr std::size_t asked_max = 64;
  static constexpr std::uint64_t patience_ns = 1'000'000'000;

  StatusPoll(Peers& peers, const Clock& clock) : peers_(peers), clock_(clock) {}
  // What is under way is done as it is.
  ~StatusPoll();
  StatusPoll(const StatusPoll&) = delete;
  StatusPoll& operator=(const StatusPoll&) = delete;

  // This node, of which `own` is to be seen, and at most `others_max` more; those that are lost are
  // not asked. `version`: whose files are asked for as well; number 0: of none.
  std::shared_ptr<const Gathered> ask(wire::peer::Seen own, const tree::NodeSet& lost,
                                      std::size_t others_max, VersionOfRun version = {});
  // `own`: what is to be seen of this node, with its files of the version that is asked for.
  void on(NodeId from, const wire::peer::Look& look, wire::peer::Seen own);
  void on(NodeId from, const wire::peer::Seen& seen);
  void lost(NodeId peer, const Error& why);
  // Ends what has waited long enough; answers when it wants to be called again (base/clock.h).
  std::uint64_t pump();

 private:
  struct Open {
    std::shared_ptr<Gathered> gathered;
    std::map<NodeId, std::size_t> waiting;  // place in `members`
    std::uint64_t until_ns = 0;
  };
  static void close_if_all(Open& open);

  Peers& peers_;
  const Clock& clock_;
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, Open> open_;
};

}  // namespace backstay::agent
