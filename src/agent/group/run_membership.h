// The agents of one run as one of them sees them: its place in the tree, over the peer connections.
//
// A run of one node has a membership too, of one agent without a network: what the tree decides
// comes at once, so that there is one way for a version to get its levels. Main loop's thread.
//
// A membership knows the addresses of all members from the ranks (know()); until then nothing is
// sent. Who asks meanwhile for a place in the tree is answered then, as it would ask again only
// after some heartbeats, and a restart would wait for it; all else that other agents send to the
// tree is dropped, as they send it again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/group/peer_connections.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tree/tree.h"
#include "wire/message.h"

namespace backstay::agent {

struct MembershipFacts {
  MemberId self;
  std::uint32_t members = 1;
  double heartbeat_s = 1;  // a tick of the tree
  std::uint32_t arity = tree::Settings{}.arity;
  const Clock* clock = &system_clock();  // of the heartbeat
};

// What becomes known of a run and its members.
class RunEvents {
 public:
  virtual ~RunEvents() = default;
  virtual void membership(const tree::Membership& change) = 0;
  // All members have entered the barrier so often.
  virtual void released(std::uint64_t barrier, std::uint64_t round) = 0;
  // What a member has published.
  virtual void fact(const tree::Fact& fact) = 0;
  // There is a connection with a member where there was none.
  virtual void reached(NodeId member) = 0;
  // Time has passed; only where there are several members.
  virtual void ticked() = 0;
};

// What is to be done on this node, beside that.
class MembershipOwner : public RunEvents {
 public:
  // All members hold the version at this level: its record is to be written, then recorded()
  // called.
  virtual void record(tree::RunVersion version, Level level) = 0;
  // All members have the record.
  virtual void announced(tree::RunVersion version, Level level) = 0;
  // What other agents say about files.
  virtual PeerEvents& files() = 0;
};

class RunMembership final : private PeerConnectionEvents {
 public:
  // `transport` may be null for one member. `remembered`: what this disk knows of versions.
  // Errors: io (no descriptor).
  static Result<std::unique_ptr<RunMembership>> create(
      MembershipFacts facts, std::unique_ptr<net::Transport> transport,
      const std::vector<tree::Remembered>& remembered, MembershipOwner& owner);
  ~RunMembership() override;

  // Where other agents reach this one; "" with one member.
  std::string address() const { return peer_connections_.address(); }
  Peers& peers() { return peer_connections_; }
  const MembershipFacts& facts() const { return facts_; }
  // Members and what they are said to be like, in one message or several; with the last one the
  // tree starts. Errors: invalid (a number that is none, one that is missing).
  Status know(const wire::Neighbours& neighbours);
  bool started() const { return started_; }
  // A later run has begun, whose members have the same numbers: from now on the owner hears of
  // versions and of time only, and what is offered is refused.
  void retire() {
    retired_ = true;
    peer_connections_.pause(false);
  }
  // While on, others wait for what they fetch from this agent (net/transport.h); nothing else does.
  void pause(bool on) { peer_connections_.pause(on); }
  const std::vector<std::string>& domains() const { return domains_; }
  // Members that are taken for dead.
  const tree::NodeSet& lost() const { return tree_.lost(); }
  // Members that the tree reaches from here downwards; the root's are all that are there.
  std::uint32_t present() const;
  // Parent and children in the tree as they are now.
  tree::Links links() const { return tree_.links(); }

  // As those of the tree. May call the owner back before they return.
  void held(VersionNumber version, Level level);
  void recorded(tree::RunVersion version, Level level);
  void enter(std::uint64_t barrier, std::uint64_t round);
  Status publish(const std::string& name, const std::string& value);
  Level told(VersionNumber version) const { return tree_.told(version); }

  // Readable when progress() has something to do; -1 with one member.
  int descriptor() const { return epoll_.get(); }
  bool has_news() const { return peer_connections_.has_news(); }
  void progress();

 private:
  RunMembership(MembershipFacts facts, std::unique_ptr<net::Transport> transport,
                const std::vector<tree::Remembered>& remembered, MembershipOwner& owner);
  Status open_descriptors();
  std::uint64_t heartbeat_ns() const {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(facts_.heartbeat_s * 1e9));
  }
  void tick_if_due();
  void carry_out();
  void carry_out(const tree::Send& send);
  void carry_out(const tree::Record& record) { owner_.record(record.version, record.level); }
  void carry_out(const tree::Announce& it) { owner_.announced(it.version, it.level); }
  void carry_out(const tree::Released& it);
  void carry_out(const tree::Fact& fact);
  void carry_out(const tree::Membership& change);

  void tree_message(NodeId from, const wire::tree::Message& message) override;
  void reached(NodeId peer) override;
  void message(NodeId from, const wire::peer::Message& message) override;
  void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) override;
  void lost(NodeId peer, const Error& why) override;

  const MembershipFacts facts_;
  MembershipOwner& owner_;
  PeerConnections peer_connections_;
  tree::Tree tree_;
  std::vector<std::string> domains_;
  std::map<NodeId, wire::tree::Join>
      early_;  // the last one of each who asked before we had started
  bool started_ = false;
  bool retired_ = false;
  bool carrying_out_ = false;
  Fd epoll_;
  Fd timer_;  // wakes the main loop; the clock says whether a tick is due
  std::uint64_t next_tick_ns_ = 0;
};

}  // namespace backstay::agent
