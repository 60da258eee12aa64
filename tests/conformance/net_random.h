// A random life of some ends under one seed, held against what transport.h promises. Include it,
// then INSTANTIATE_TEST_SUITE_P(name, NetRandom, ...).
#pragma once

#include <map>

#include "net_conformance.h"
#include "support/seed.h"

namespace backstay::testing {

// What one side of one connection has done and seen.
struct NetPeerAudit {
  bool connected = false, closed = false, closed_by_us = false;
  std::uint64_t sent = 0;                  // messages and offers, numbered from 0 in one order
  std::uint64_t received = 0;              // the number that comes next
  std::map<net::OfferId, Buffer> offered;  // not yet Taken
  std::map<net::OfferId, std::pair<std::uint64_t, Buffer>> fetching;  // number, memory
  std::vector<std::pair<net::OfferId, std::uint64_t>> on_offer;  // to us: its number in the order
  std::map<net::OfferId, std::uint64_t> offered_bytes;
};

class NetRandom : public ::testing::TestWithParam<NetCase> {
 protected:
  static constexpr std::size_t ends = 4;

  NetRandom() : audits_(ends), world_(GetParam().make(ends)), read_(ends, 0) {}

  static Buffer numbered(std::uint64_t number, std::size_t padding) {
    ByteWriter writer;
    writer.put(number);
    writer.put_zeros(padding);
    return writer.take();
  }

  void act() {
    const std::size_t end = random_.between(0, ends - 1);
    const auto what = random_.between(0, 99);
    if (what < 8 || open(end).empty()) return connect(end);
    const auto peers = open(end);
    const net::PeerId peer = peers[random_.between(0, peers.size() - 1)];
    NetPeerAudit& audit = audits_[end][peer];
    if (what < 50) return send(end, peer, audit);
    if (what < 75) return offer(end, peer, audit);
    if (what < 98) return answer(end, peer, audit);
    audit.closed_by_us = true;
    world_[end].close(peer);
  }

  void connect(std::size_t end) {
    if (open(end).size() > 12) return;
    audits_[end][world_[end].connect(world_[random_.between(0, ends - 1)].facts().address)];
  }
  void send(std::size_t end, net::PeerId peer, NetPeerAudit& audit) {
    const auto status = world_[end].send(peer, numbered(audit.sent, random_.between(0, 3000)));
    count(status, audit);
  }
  void offer(std::size_t end, net::PeerId peer, NetPeerAudit& audit) {
    Buffer memory = pattern(random_.between(1, 400'000), audit.sent);
    const auto offer = world_[end].offer(peer, numbered(audit.sent, 0), memory);
    count(offer, audit);
    if (offer.ok()) audit.offered[*offer] = std::move(memory);  // the bytes stay where they are
  }
  template <typename T>
  void count(const Result<T>& result, NetPeerAudit& audit) {
    if (result.ok()) ++audit.sent;
    // A peer may have gone without our having read it.
    else
      ASSERT_TRUE(fails_with(result, Code::again) || fails_with(result, Code::agent_lost));
  }
  void answer(std::size_t end, net::PeerId peer, NetPeerAudit& audit) {
    if (audit.on_offer.empty()) return;
    const std::size_t at = random_.between(0, audit.on_offer.size() - 1);
    const auto [offer, number] = audit.on_offer[at];
    audit.on_offer.erase(audit.on_offer.begin() + static_cast<std::ptrdiff_t>(at));
    if (random_.between(0, 4) == 0) {
      const auto status = world_[end].refuse(peer, offer);
      if (!status.ok()) {
        ASSERT_TRUE(fails_with(status, Code::agent_lost));
      }
      return;
    }
    Buffer memory(audit.offered_bytes.at(offer));
    const auto status = world_[end].fetch(peer, offer, memory);
    if (status.ok()) {
      audit.fetching[offer] = {number, std::move(memory)};
    } else {
      ASSERT_TRUE(fails_with(status, Code::agent_lost));
    }
  }

  std::vector<net::PeerId> open(std::size_t end) const {
    std::vector<net::PeerId> peers;
    for (const auto& [peer, audit] : audits_[end])
      if (audit.connected && !audit.closed && !audit.closed_by_us) peers.push_back(peer);
    return peers;
  }

  void step() {
    world_.step();
    for (std::size_t end = 0; end < ends; ++end) {
      for (; read_[end] < world_.seen(end).size(); ++read_[end]) {
        const net::Event& event = world_.seen(end)[read_[end]];
        NetPeerAudit& audit = audits_[end][net::peer_of(event)];
        ASSERT_FALSE(audit.closed) << "an event after Closed";
        std::visit([&](const auto& one) { see(one, audit); }, event);
      }
    }
  }
  void see(const net::Connected&, NetPeerAudit& audit) {
    EXPECT_FALSE(audit.connected);
    audit.connected = true;
  }
  void next(Bytes bytes, NetPeerAudit& audit) {
    EXPECT_TRUE(audit.connected);
    EXPECT_FALSE(audit.closed_by_us) << "it came after close()";
    const auto number = ByteReader(bytes).get<std::uint64_t>();
    ASSERT_GE(number, audit.received) << "out of order, or twice";
    if (!GetParam().swallows_offers) {
      ASSERT_EQ(number, audit.received) << "something before it is missing";
    }
    audit.received = number + 1;
  }
  void see(const net::Message& message, NetPeerAudit& audit) { next(message.bytes, audit); }
  void see(const net::Offered& offered, NetPeerAudit& audit) {
    audit.on_offer.emplace_back(offered.offer, ByteReader(offered.header).get<std::uint64_t>());
    audit.offered_bytes[offered.offer] = offered.bytes;
    next(offered.header, audit);
  }
  void see(const net::Taken& taken, NetPeerAudit& audit) {
    EXPECT_EQ(audit.offered.erase(taken.offer), 1u) << "taken twice, or never offered";
  }
  void see(const net::Fetched& fetched, NetPeerAudit& audit) {
    const auto at = audit.fetching.find(fetched.offer);
    ASSERT_NE(at, audit.fetching.end()) << "fetched twice, or never asked for";
    const auto& [number, memory] = at->second;
    if (fetched.status.ok()) {
      EXPECT_EQ(first_difference(memory, number), memory.size());
      ++moved_;
    }
    audit.fetching.erase(at);
  }
  void see(const net::Ready&, NetPeerAudit& audit) { EXPECT_TRUE(audit.connected); }
  void see(const net::Closed& closed, NetPeerAudit& audit) {
    EXPECT_TRUE(audit.offered.empty()) << "closed before all was taken";
    EXPECT_TRUE(audit.fetching.empty()) << "closed before all was fetched";
    EXPECT_TRUE(audit.closed_by_us || !closed.status.ok());
    audit.closed = true;
  }

  bool all_closed() const {
    for (const auto& end : audits_)
      for (const auto& [peer, audit] : end)
        if (!audit.closed) return false;
    return true;
  }

  test::Random random_;
  std::vector<std::map<net::PeerId, NetPeerAudit>> audits_;  // their memory outlives the ends
  std::size_t moved_ = 0;
  NetWorld world_;
  std::vector<std::size_t> read_;
};

TEST_P(NetRandom, KeepsItsPromises) {
  SCOPED_TRACE(test::replay());
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    act();
    if (random_.coin()) step();
  }
  for (std::size_t end = 0; end < ends; ++end) {
    for (auto& [peer, audit] : audits_[end]) {
      audit.closed_by_us = audit.closed_by_us || !audit.closed;
      world_[end].close(peer);
    }
  }
  EXPECT_TRUE(world_.until([&] {
    step();
    return HasFatalFailure() || all_closed();
  }));
  EXPECT_GT(moved_, 0u) << "nothing was moved: the test shows nothing";
}

}  // namespace backstay::testing
