// Connections to the other agents of a run, over one transport (docs/protocol/peers.md): who is
// who, which protocol a message belongs to, dialling when there is something to say.
//
// Between two agents there may be two connections, as both may have dialled: each side talks over
// the one that it has had longer. They end together: `lost` is reported once, and nothing comes
// over the other one after it. So it is where an agent comes back with a later incarnation before
// the end of the earlier one was noticed. What waits for a connection is bounded: an agent that
// takes nothing is cut off. A message to ourselves takes the same way without the network. Main
// loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/group/peers.h"
#include "agent/version/member_id.h"
#include "net/transport.h"
#include "wire/tree_message.h"

namespace backstay::agent {

// What the connections report. `lost` is not reported for an agent without an earlier connection.
class PeerConnectionEvents : public PeerEvents {
 public:
  virtual void tree_message(NodeId from, const wire::tree::Message& message) = 0;
  // There is a connection where there was none.
  virtual void reached(NodeId peer) = 0;
};

class PeerConnections final : public Peers {
 public:
  // What waits for one agent; beyond it the connection ends.
  static constexpr std::size_t queued_bytes_max = std::size_t{8} << 20;

  // `transport` may be null where there is one member: then only messages to ourselves go.
  PeerConnections(std::unique_ptr<net::Transport> transport, MemberId self, std::uint32_t members,
                  PeerConnectionEvents& events);
  ~PeerConnections() override;

  // Where we are reached; "" without a transport.
  std::string address() const;
  // Readable when progress() has something to do; -1 without a transport.
  int descriptor() const;
  // Callbacks and messages to ourselves wait: call progress() although the descriptor is quiet.
  bool has_news() const { return !later_.empty(); }
  // Does what can be done without waiting; every event and callback comes from here.
  void progress();
  // Sends what can be sent without waiting, and drops what comes: for those who end and have had
  // their last word.
  void push();

  // As Transport's.
  void pause(bool on);

  // Where a member is reached. A later address counts.
  void know(NodeId node, const std::string& address);
  const std::string& address_of(NodeId node) const;

  void send_tree(NodeId to, const std::string& address, const wire::tree::Message& message);
  NodeId self() const override { return self_.node; }
  std::uint32_t members() const override { return members_; }
  void send(NodeId to, wire::peer::Message message) override;
  void offer(NodeId to, std::uint64_t ticket, Bytes memory, Ended ended) override;
  void fetch(OfferFrom offer, std::span<std::byte> memory, Ended ended) override;
  void refuse(OfferFrom offer) override;

 private:
  struct Waiting {  // for a connection, or for room in its queue
    Buffer message;
    Bytes memory;  // an offer, where `ended` is set
    Ended ended;
  };
  struct Node {
    std::string address;
    std::vector<net::PeerId> open;  // the longest there first
    std::uint64_t incarnation = 0;  // of who is, or was, at the other end of those
    net::PeerId dialled = 0;
    bool blocked = false;  // until Ready
    std::deque<Waiting> queue;
    std::size_t queued_bytes = 0;
    std::string said;  // in the log: why there is no connection
  };
  using Key = std::pair<net::PeerId, net::OfferId>;

  void put(NodeId to, Waiting waiting);
  void flush(NodeId to, Node& node);
  Status hand_over(net::PeerId peer, Waiting& waiting);
  void dial(NodeId to, Node& node);
  void fail(Waiting& waiting, const Error& why);
  // Ends every connection, and what waits; nothing that they still bring is heard.
  void part(Node& node, const Error& why);
  // And reports it. Only from progress().
  void lose(NodeId to, Node& node, const Error& why);
  void turn_away(net::PeerId peer);
  void deliver(NodeId from, Bytes message);
  void call_later_ones();

  void on(const net::Connected& event);
  void on(const net::Message& event);
  void on(const net::Offered& event);
  void on(const net::Fetched& event);
  void on(const net::Taken& event);
  void on(const net::Ready& event);
  void on(const net::Closed& event);

  const std::unique_ptr<net::Transport> transport_;
  const MemberId self_;
  const std::uint32_t members_;
  PeerConnectionEvents& events_;
  std::map<NodeId, Node> nodes_;
  std::map<net::PeerId, NodeId> node_of_;
  std::map<Key, Ended> offers_;
  std::map<Key, Ended> fetches_;
  std::deque<std::function<void()>> later_;
};

}  // namespace backstay::agent
