// A rank's way to the coordinator of cuts, over its session's connection (docs/protocol/cut.md):
// for the process that owns the rank's cut::Rank.
//
// The session must outlive it; its other functions are used as always, also while orders come:
// they wait here until take(). A checkpoint of the session that follows an order *save* takes the
// version of that cut too. One thread at a time with the session.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "client/session.h"
#include "cut/message.h"
#include "cut/report.h"

namespace backstay::client {

class CutLink {
 public:
  explicit CutLink(Session& session) : session_(session), connected_(session.connected_) {}

  // A cut is wanted; said again to the next agent until it is answered by Over. Errors: agent_lost
  // (it is said to the next one).
  Status request();
  // What cut::Rank puts out. Errors: agent_lost, too_large.
  Status report(const cut::Report& report);
  // The rank cannot take part in the cut, or cannot be saved. Code again: it may be able to later.
  Status refuse(cut::CutNumber cut, const Error& why);

  // Takes the version that the last order *save* names. Not collective: the agents see to it that
  // the version counts only when all ranks have it. Blocks until this node's ranks have ended and
  // all ranks are closed, or until the version is given up: report *closed* before. Errors: state
  // (no order), agent_lost, and those of capture().
  Status save(ObjectSource& source);

  // A cut that this rank has asked for has ended.
  struct Over {
    cut::CutNumber cut = 0;
    // Why it was given up. Code again: it is tried again, and Over comes again.
    Status how;
  };
  struct AgentLost {};   // cut::Rank::lose_coordinator()
  struct AgentFound {};  // cut::Rank::find_coordinator()
  using News = std::variant<cut::Order, Over, AgentLost, AgentFound>;
  // All that has come, in order. Never blocks.
  std::vector<News> take();

  // Readable when something has come, or the agent is lost; -1 without an agent. What has come
  // during other calls of the session does not make it readable: take() first, then wait.
  int descriptor() const;
  // Collective. Connects again, or starts an agent, where one is lost. Errors: as a checkpoint's.
  Status find_agent() { return session_.ready(Status()); }

 private:
  bool connected() const { return session_.agent_ != nullptr && session_.agent_->usable(); }
  Status send(const wire::Message& message);
  void take(const wire::Message& message, std::vector<News>& news);
  void hear(std::vector<News>& news);
  void lose(std::vector<News>& news);

  Session& session_;
  std::uint64_t connected_;  // the session's, as far as the owner knows
  bool lost_ = false;        // the owner knows
  bool wanted_ = false;
  cut::CutNumber last_ = 0;
  cut::OrderParts parts_;
};

}  // namespace backstay::client
