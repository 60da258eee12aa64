#include "agent/group/peer_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/loopback.h"
#include "net/tcp.h"

namespace backstay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr RunId run_of_connections = 7;

std::string name_of(NodeId node, std::uint64_t incarnation = 1, RunId of_run = run_of_connections) {
  return MemberId{of_run, node, incarnation}.text();
}

// What the connections told, in the order in which it did.
struct Heard final : PeerConnectionEvents {
  void tree_message(NodeId from, const wire::tree::Message& message) override {
    note("tree", from, std::to_string(std::get<wire::tree::Leave>(message).link.attempt));
  }
  void message(NodeId from, const wire::peer::Message& message) override {
    note("message", from, std::to_string(std::get<wire::peer::HoldsSeen>(message).batch));
  }
  void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) override {
    note("offered", from, std::to_string(ticket) + ":" + std::to_string(bytes));
    offers.push_back(offer);
  }
  void reached(NodeId peer) override { note("reached", peer); }
  void lost(NodeId peer, const Error& why) override {
    note("lost", peer);
    EXPECT_EQ(why.code(), Code::agent_lost);
  }
  void note(const std::string& what, NodeId who, const std::string& more = "") {
    log.push_back(what + " " + std::to_string(who) + (more.empty() ? "" : " " + more));
  }
  std::vector<std::string> log;
  std::vector<OfferFrom> offers;
};

struct Agent {
  Agent(std::unique_ptr<net::Transport> transport, MemberId self, std::uint32_t members)
      : peer_connections(std::move(transport), self, members, heard) {}
  // What was told since the last call.
  std::vector<std::string> told() { return std::exchange(heard.log, {}); }
  void say(NodeId to, std::uint64_t number) {
    peer_connections.send(to, wire::peer::HoldsSeen{number});
  }
  void say_in_tree(NodeId to, std::uint64_t number) {
    peer_connections.send_tree(to, "", wire::tree::Leave{{.attempt = number}});
  }
  Heard heard;
  PeerConnections peer_connections;
};

bool readable(int descriptor, int timeout_ms = 0) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, timeout_ms) == 1;
}

// Agents, and a raw transport that a test plays, in one thread.
class PeerConnectionsTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t members = 4;
  PeerConnectionsTest() {
    spdlog::set_level(spdlog::level::critical);
  }  // what goes wrong here is meant to

  Agent& add(NodeId node, std::uint64_t incarnation = 1) {
    const MemberId self{run_of_connections, node, incarnation};
    agents_[node] = std::make_unique<Agent>(network_.make(self.text()), self, members);
    return *agents_[node];
  }
  void kill(NodeId node) { agents_.erase(node); }
  // Two that know each other and have spoken; what they told so far is forgotten.
  std::pair<Agent&, Agent&> two_connected() {
    Agent& a = add(0);
    Agent& b = add(1);
    a.peer_connections.know(1, name_of(1));
    b.peer_connections.know(0, name_of(0));
    a.say(1, 0);
    settle();
    a.told();
    b.told();
    return {a, b};
  }
  // Until nobody has anything left to do.
  void settle() {
    for (int rounds = 0;; ++rounds) {
      ASSERT_LT(rounds, 10'000) << "it never comes to rest";
      bool quiet = true;
      for (auto& [node, agent] : agents_) {
        if (!readable(agent->peer_connections.descriptor()) && !agent->peer_connections.has_news())
          continue;
        quiet = false;
        agent->peer_connections.progress();
      }
      if (raw_ && readable(raw_->facts().descriptor)) {
        quiet = false;
        for (net::Event& event : raw_->progress()) raw_events_.push_back(std::move(event));
      }
      if (quiet) return;
    }
  }
  // An agent without peer connections, which says what it likes.
  void make_raw(const std::string& identity) { raw_ = network_.make(identity); }
  net::PeerId raw_connect(const std::string& address) {
    const net::PeerId peer = raw_->connect(address);
    settle();
    return peer;
  }
  template <typename T>
  std::size_t raw_count() const {
    return static_cast<std::size_t>(
        std::count_if(raw_events_.begin(), raw_events_.end(),
                      [](const auto& event) { return std::holds_alternative<T>(event); }));
  }

  ManualClock clock_;
  net::LoopbackNetwork network_{clock_};
  std::map<NodeId, std::unique_ptr<Agent>> agents_;
  std::unique_ptr<net::Transport> raw_;
  std::vector<net::Event> raw_events_;
};

// Counts the ends of one offer or fetch.
struct Ends {
  Peers::Ended ended() {
    return [this](const Status& status) {
      codes.push_back(status.ok() ? Code::ok : status.error().code());
    };
  }
  std::vector<Code> codes;
};

Buffer held_message(std::uint64_t number) {
  Buffer bytes{std::byte{2}};
  const Buffer packet = wire::peer::encode(wire::peer::HoldsSeen{number}).value();
  bytes.insert(bytes.end(), packet.begin(), packet.end());
  return bytes;
}

// --- names ---------------------------------------------------------------------------------------

TEST(MemberId, ComesBackFromItsText) {
  const MemberId id{0xabcdef, 17, 1234567890123456789};
  EXPECT_EQ(id.text(), "0000000000abcdef 17 1234567890123456789");
  const auto back = MemberId::parse(id.text());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->run, id.run);
  EXPECT_EQ(back->node, id.node);
  EXPECT_EQ(back->incarnation, id.incarnation);
}

TEST(MemberId, OtherTextsAreRefused) {
  for (const char* text :
       {"", " ", "0000000000abcdef", "0000000000abcdef 17", "0000000000abcdef 17 ",
        "0000000000abcdef 17 1 ", " 0000000000abcdef 17 1", "abcdef 17 1", "0000000000ABCDEF 17 1",
        "0000000000abcdef  17 1", "0000000000abcdef 017 1", "0000000000abcdef -1 1",
        "0000000000abcdef 4294967296 1", "0000000000abcdef 17 +1",
        "0000000000abcdef 17 18446744073709551616", "0000000000abcdeg 17 1",
        "10000000000abcdef 17 1"}) {
    EXPECT_FALSE(MemberId::parse(text).ok()) << text;
  }
}

// --- messages -----------------------------------------------------------------------------------

TEST(MeshAlone, AMessageToOurselvesComesLater) {
  Agent one(nullptr, {run_of_connections, 0, 1}, 1);
  EXPECT_EQ(one.peer_connections.address(), "");
  EXPECT_EQ(one.peer_connections.descriptor(), -1);
  one.say(0, 5);
  EXPECT_THAT(one.told(), IsEmpty());
  EXPECT_TRUE(one.peer_connections.has_news());
  one.peer_connections.progress();
  EXPECT_THAT(one.told(), ElementsAre("message 0 5"));
  EXPECT_FALSE(one.peer_connections.has_news());
}

TEST_F(PeerConnectionsTest, MessagesGoBothWaysOnBothChannels) {
  Agent& a = add(0);
  Agent& b = add(1);
  a.peer_connections.know(1, b.peer_connections.address());
  a.say(1, 1);
  a.say_in_tree(1, 2);
  settle();
  EXPECT_THAT(b.told(), ElementsAre("reached 0", "message 0 1", "tree 0 2"));
  b.say_in_tree(0, 3);  // over the connection that is there: b knows no address
  b.say(0, 4);
  settle();
  EXPECT_THAT(a.told(), ElementsAre("reached 1", "tree 1 3", "message 1 4"));
}

TEST_F(PeerConnectionsTest, WhatIsSentBeforeTheAddressIsKnownGoesOnceItIs) {
  Agent& a = add(0);
  Agent& b = add(1);
  a.say(1, 1);
  a.say_in_tree(1, 2);
  settle();
  EXPECT_THAT(b.told(), IsEmpty());
  a.peer_connections.know(1, b.peer_connections.address());
  settle();
  EXPECT_THAT(b.told(), ElementsAre("reached 0", "message 0 1", "tree 0 2"));
}

TEST_F(PeerConnectionsTest, TheTreeBringsAnAddressWhereThereIsNone) {
  Agent& a = add(0);
  Agent& b = add(1);
  a.peer_connections.send_tree(1, b.peer_connections.address(), wire::tree::Leave{{.attempt = 1}});
  a.peer_connections.send_tree(1, "nowhere", wire::tree::Leave{{.attempt = 2}});
  EXPECT_EQ(a.peer_connections.address_of(1), b.peer_connections.address());
  EXPECT_EQ(a.peer_connections.address_of(2), "");
  settle();
  EXPECT_THAT(b.told(), ElementsAre("reached 0", "tree 0 1", "tree 0 2"));
}

TEST_F(PeerConnectionsTest, TwoThatDialEachOtherAtOnceHearEachMessageOnce) {
  Agent& a = add(0);
  Agent& b = add(1);
  a.peer_connections.know(1, b.peer_connections.address());
  b.peer_connections.know(0, a.peer_connections.address());
  a.say(1, 1);
  b.say(0, 2);
  settle();
  for (std::uint64_t number = 10; number < 13; ++number) a.say(1, number);
  settle();
  EXPECT_THAT(a.told(), ElementsAre("reached 1", "message 1 2"));
  EXPECT_THAT(b.told(), ElementsAre("reached 0", "message 0 1", "message 0 10", "message 0 11",
                                    "message 0 12"));
  kill(0);
  settle();
  EXPECT_THAT(b.told(), ElementsAre("lost 0"));  // of two connections
}

TEST_F(PeerConnectionsTest, WhatDoesNotFitWaitsAndArrivesInOrder) {
  auto [a, b] = two_connected();
  std::vector<std::string> all;
  for (std::uint64_t number = 0; number < 40'000; ++number) {  // above the transport's queue
    a.say(1, number);
    all.push_back("message 0 " + std::to_string(number));
  }
  settle();
  EXPECT_EQ(b.told(), all);
}

// --- who belongs here ---------------------------------------------------------------------------

TEST_F(PeerConnectionsTest, WhoDoesNotBelongHereIsCutOff) {
  Agent& a = add(0);
  for (const std::string& identity : {name_of(1, 1, run_of_connections + 1), name_of(members),
                                      name_of(0, 2), std::string("somebody")}) {
    raw_events_.clear();
    make_raw(identity);
    const net::PeerId peer = raw_->connect(a.peer_connections.address());
    for (int i = 0; i < 3 && raw_count<net::Connected>() == 0; ++i) {
      for (auto& event : raw_->progress()) raw_events_.push_back(event);
      if (raw_count<net::Connected>() == 0) a.peer_connections.progress();
    }
    (void)raw_->send(peer, held_message(1));
    settle();
    EXPECT_EQ(raw_count<net::Closed>(), 1u) << identity;
    EXPECT_THAT(a.told(), IsEmpty()) << identity;
  }
}

TEST_F(PeerConnectionsTest, WhoAnswersAtTheAddressOfAnotherIsNotHeard) {
  Agent& a = add(0);
  add(2);
  a.peer_connections.know(1, name_of(2));
  Ends ends;
  const Buffer memory(8);
  a.say(1, 1);
  a.peer_connections.offer(1, 1, memory, ends.ended());
  settle();
  EXPECT_THAT(a.told(), ElementsAre("lost 1"));
  EXPECT_THAT(ends.codes, ElementsAre(Code::agent_lost));
}

TEST_F(PeerConnectionsTest, GarbageEndsTheConnectionAndWhatFollowsIsNotHeard) {
  const auto bytes = [](std::initializer_list<int> all) {
    Buffer buffer;
    for (const int one : all) buffer.push_back(static_cast<std::byte>(one));
    return buffer;
  };
  for (const Buffer& garbage :
       {bytes({}), bytes({1}), bytes({2}), bytes({3, 1, 1, 1}), bytes({2, 255, 255, 1, 0}),
        bytes({1, 255, 255, 1, 0, 0, 0, 0, 0})}) {
    Agent& a = add(0);
    raw_events_.clear();
    make_raw(name_of(1));
    const net::PeerId peer = raw_connect(a.peer_connections.address());
    ASSERT_TRUE(raw_->send(peer, held_message(1)).ok());
    ASSERT_TRUE(raw_->send(peer, garbage).ok());
    ASSERT_TRUE(raw_->send(peer, held_message(2)).ok());
    settle();
    EXPECT_THAT(a.told(), ElementsAre("reached 1", "message 1 1", "lost 1")) << garbage.size();
    EXPECT_EQ(raw_count<net::Closed>(), 1u);
    raw_.reset();
    kill(0);
  }
}

// --- bulk data ----------------------------------------------------------------------------------

TEST_F(PeerConnectionsTest, AnOfferIsFetchedOrRefused) {
  auto [a, b] = two_connected();
  const Buffer memory(5000, std::byte{42});
  Ends taken;
  Ends refused;
  a.peer_connections.offer(1, 7, memory, taken.ended());
  a.peer_connections.offer(1, 8, memory, refused.ended());
  settle();
  ASSERT_THAT(b.told(), ElementsAre("offered 0 7:5000", "offered 0 8:5000"));
  Buffer into(5000);
  Ends fetched;
  b.peer_connections.fetch(b.heard.offers[0], into, fetched.ended());
  b.peer_connections.refuse(b.heard.offers[1]);
  EXPECT_THAT(fetched.codes, IsEmpty());
  settle();
  EXPECT_THAT(fetched.codes, ElementsAre(Code::ok));
  EXPECT_THAT(taken.codes, ElementsAre(Code::ok));
  EXPECT_THAT(refused.codes, ElementsAre(Code::again));
  EXPECT_EQ(into, memory);
  b.peer_connections.fetch(b.heard.offers[1], into, fetched.ended());  // it is gone
  EXPECT_EQ(fetched.codes.size(), 1u);
  settle();
  EXPECT_THAT(fetched.codes, ElementsAre(Code::ok, Code::not_found));
}

TEST_F(PeerConnectionsTest, AnOfferToWhoDiesEndsOnce) {
  auto [a, b] = two_connected();
  const Buffer memory(64);
  Ends offered;  // and announced
  a.peer_connections.offer(1, 1, memory, offered.ended());
  settle();
  Ends waiting;  // for an address that nobody tells
  a.peer_connections.offer(2, 2, memory, waiting.ended());
  kill(1);
  Ends late;  // to who is dead, before that is known
  a.peer_connections.offer(1, 3, memory, late.ended());
  settle();
  EXPECT_THAT(offered.codes, ElementsAre(Code::agent_lost));
  EXPECT_THAT(late.codes, ElementsAre(Code::agent_lost));
  EXPECT_THAT(waiting.codes, IsEmpty());
  EXPECT_THAT(a.told(), ElementsAre("lost 1"));
}

TEST_F(PeerConnectionsTest, AFetchFromWhoDiesEndsOnce) {
  auto [a, b] = two_connected();
  const Buffer memory(64);
  Buffer into(64);
  Ends offered;
  Ends fetched;
  Ends after;
  a.peer_connections.offer(1, 1, memory, offered.ended());
  while (b.heard.offers.empty()) b.peer_connections.progress();
  b.peer_connections.fetch(b.heard.offers[0], into, fetched.ended());
  kill(0);
  settle();
  EXPECT_THAT(fetched.codes, ElementsAre(Code::agent_lost));
  b.peer_connections.fetch(b.heard.offers[0], into, after.ended());
  settle();
  EXPECT_THAT(after.codes, ElementsAre(Code::agent_lost));
}

TEST_F(PeerConnectionsTest, WhatTheNetworkDoesNotTakeHoldsNothingUp) {
  auto [a, b] = two_connected();
  Ends empty;
  a.peer_connections.offer(1, 1, Bytes(), empty.ended());
  a.say(1, 2);
  settle();
  EXPECT_THAT(empty.codes, ElementsAre(Code::invalid));
  EXPECT_THAT(b.told(), ElementsAre("message 0 2"));
}

// --- who goes, and comes back -------------------------------------------------------------------

TEST_F(PeerConnectionsTest, WhoDiesIsLostOnceAndDialledAgainWhenThereIsSomethingToSay) {
  auto [a, b] = two_connected();
  kill(1);
  a.say(1, 1);  // falls with the connection
  settle();
  EXPECT_THAT(a.told(), ElementsAre("lost 1"));
  a.say(1, 2);  // nobody answers
  settle();
  EXPECT_THAT(a.told(), ElementsAre("lost 1"));
  Agent& again = add(1);
  a.say(1, 3);
  settle();
  EXPECT_THAT(a.told(), ElementsAre("reached 1"));
  EXPECT_THAT(again.told(), ElementsAre("reached 0", "message 0 3"));
}

TEST_F(PeerConnectionsTest, LostComesBeforeReachedWhereBothHappenAtOnce) {
  Agent& a = add(0);
  make_raw(name_of(1));
  const net::PeerId first = raw_connect(a.peer_connections.address());
  a.told();
  raw_->close(first);
  raw_->connect(a.peer_connections.address());
  settle();
  EXPECT_THAT(a.told(), ElementsAre("lost 1", "reached 1"));
}

TEST_F(PeerConnectionsTest, ConnectionsToOneAgentEndTogether) {
  for (const bool front : {true, false}) {
    Agent& a = add(0);
    make_raw(name_of(1));
    a.peer_connections.know(1, name_of(1));
    a.say(1, 1);
    settle();  // a's own comes first
    const net::PeerId own = net::peer_of(raw_events_.front());
    const net::PeerId second = raw_connect(a.peer_connections.address());
    raw_events_.clear();
    raw_->close(front ? own : second);
    settle();
    EXPECT_THAT(a.told(), ElementsAre("reached 1", "lost 1"));
    EXPECT_EQ(raw_count<net::Closed>(), 2u);
    a.say(1, 2);
    settle();
    EXPECT_THAT(a.told(), ElementsAre("reached 1"));
    raw_.reset();
    raw_events_.clear();
    kill(0);
  }
}

TEST_F(PeerConnectionsTest, ALaterIncarnationEndsTheConnectionOfTheEarlierOne) {
  Agent& a = add(0);
  make_raw(name_of(1, 5));  // its host has lost its power: nothing tells that it is gone
  const net::PeerId old = raw_connect(a.peer_connections.address());
  auto newer = network_.make(name_of(1, 6));
  newer->connect(a.peer_connections.address());
  ASSERT_TRUE(raw_->send(old, held_message(1)).ok());
  settle();
  EXPECT_THAT(a.told(), ElementsAre("reached 1", "lost 1", "reached 1"));
  a.say(1, 2);
  bool heard = false;
  for (const auto& event : newer->progress()) heard |= std::holds_alternative<net::Message>(event);
  EXPECT_TRUE(heard);
  raw_events_.clear();
  raw_connect(a.peer_connections.address());  // one that is late
  EXPECT_EQ(raw_count<net::Closed>(), 1u);
  EXPECT_THAT(a.told(), IsEmpty());
}

TEST_F(PeerConnectionsTest, WhoTakesNothingIsCutOff) {
  Agent& a = add(0);
  make_raw(name_of(1));
  raw_connect(a.peer_connections.address());
  Ends ends;
  const Buffer memory(8);
  const wire::peer::No large{1, Code::io, std::string(4000, 'x')};
  std::size_t sent = 0;
  for (; a.heard.log.size() < 2 && sent < 10'000; ++sent) {
    a.peer_connections.send(1, large);
    if (sent == 1000) a.peer_connections.offer(1, 1, memory, ends.ended());
    if (a.peer_connections.has_news()) a.peer_connections.progress();
  }
  // The connections' own queue, and that of the transport.
  const std::size_t bytes = PeerConnections::queued_bytes_max + raw_->facts().queued_bytes_max;
  EXPECT_NEAR(static_cast<double>(sent * 4000), static_cast<double>(bytes), 0.1 * 1e7);
  settle();
  EXPECT_THAT(a.told(), ElementsAre("reached 1", "lost 1"));
  EXPECT_THAT(ends.codes, ElementsAre(Code::agent_lost));
  EXPECT_EQ(raw_count<net::Closed>(), 1u);
}

TEST_F(PeerConnectionsTest, WhatWaitsForAnAddressIsBoundedToo) {
  Agent& a = add(0);
  Ends ends;
  const Buffer memory(8);
  a.peer_connections.offer(1, 1, memory, ends.ended());
  const wire::peer::No large{1, Code::io, std::string(4000, 'x')};
  for (std::size_t sent = 0; sent < 3 * PeerConnections::queued_bytes_max; sent += 4000) {
    a.peer_connections.send(1, large);
    if (a.heard.log.size() == 1) break;
    if (a.peer_connections.has_news()) a.peer_connections.progress();
  }
  EXPECT_THAT(a.told(), ElementsAre("lost 1"));
  EXPECT_THAT(ends.codes, ElementsAre(Code::agent_lost));
}

TEST_F(PeerConnectionsTest, LastWordsAreSentAndNothingIsHeard) {
  auto [a, b] = two_connected();
  b.say(0, 1);
  a.say(1, 2);
  a.peer_connections.push();
  EXPECT_THAT(a.told(), IsEmpty());
  kill(0);
  settle();
  EXPECT_THAT(b.told(), ElementsAre("message 0 2", "lost 0"));
}

// --- over sockets -------------------------------------------------------------------------------

TEST(MeshOverTcp, MessagesAndDataGoBothWaysAndAnotherRunIsCutOff) {
  spdlog::set_level(spdlog::level::critical);
  const net::Secret secret = net::Secret::random();
  const auto make = [&](NodeId node, RunId of_run) {
    const MemberId self{of_run, node, 1};
    auto end = net::make_tcp({.secret = secret, .identity = self.text(), .device = "lo"});
    EXPECT_TRUE(end.ok());
    return std::make_unique<Agent>(std::move(*end), self, 3);
  };
  auto a = make(0, run_of_connections);
  auto b = make(1, run_of_connections);
  auto stranger = make(2, run_of_connections + 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto until = [&](auto done) {
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      pollfd all[] = {{a->peer_connections.descriptor(), POLLIN, 0},
                      {b ? b->peer_connections.descriptor() : -1, POLLIN, 0},
                      {stranger->peer_connections.descriptor(), POLLIN, 0}};
      ::poll(all, 3, 100);
      for (Agent* agent : {a.get(), b.get(), stranger.get()}) {
        if (agent) agent->peer_connections.progress();
      }
    }
    return done();
  };
  a->peer_connections.know(1, b->peer_connections.address());
  b->peer_connections.know(0, a->peer_connections.address());
  stranger->peer_connections.know(0, a->peer_connections.address());
  const Buffer memory(100'000, std::byte{7});
  Buffer into(memory.size());
  Ends taken;
  Ends fetched;
  a->say(1, 1);
  a->peer_connections.offer(1, 2, memory, taken.ended());
  b->say(0, 3);
  stranger->say(0, 4);
  ASSERT_TRUE(until([&] { return !b->heard.offers.empty() && !stranger->heard.log.empty(); }));
  b->peer_connections.fetch(b->heard.offers[0], into, fetched.ended());
  ASSERT_TRUE(until([&] { return !taken.codes.empty() && !fetched.codes.empty(); }));
  EXPECT_EQ(into, memory);
  ASSERT_TRUE(until([&] { return a->heard.log.size() >= 2; }));
  EXPECT_THAT(a->told(), ElementsAre("reached 1", "message 1 3"));
  EXPECT_THAT(b->told(), ElementsAre("reached 0", "message 0 1", "offered 0 2:100000"));
  b.reset();
  ASSERT_TRUE(until([&] { return !a->heard.log.empty(); }));
  EXPECT_THAT(a->told(), ElementsAre("lost 1"));
}

}  // namespace
}  // namespace backstay::agent
