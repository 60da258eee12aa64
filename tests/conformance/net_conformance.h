// What every Transport does. Include it, then INSTANTIATE_TEST_SUITE_P(name, NetConformance, ...).
#pragma once

#include <functional>
#include <string>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "net_world.h"

namespace backstay::testing {

struct NetCase {
  std::string name;
  std::function<NetUnderTest(std::size_t ends)> make;
  bool swallows_offers = false;  // refuses some of them itself
};

inline std::string net_case_name(const ::testing::TestParamInfo<NetCase>& info) {
  return info.param.name;
}

class NetConformance : public ::testing::TestWithParam<NetCase> {
 protected:
  NetWorld make(std::size_t ends = 2) { return NetWorld(GetParam().make(ends)); }

  static Buffer bytes_of(std::string_view text) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    return {first, first + text.size()};
  }

  // An offer that has arrived: its number at both sides.
  net::OfferId announce(NetWorld& world, std::size_t from, net::PeerId to, std::size_t at,
                        Bytes memory) {
    const std::size_t before = world.count<net::Offered>(at);
    const auto offer = world[from].offer(to, {}, memory);
    EXPECT_TRUE(is_ok(offer));
    EXPECT_TRUE(world.until([&] { return world.count<net::Offered>(at) == before + 1; }));
    return offer.ok() ? *offer : 0;
  }
};

TEST_P(NetConformance, FactsAreGiven) {
  auto world = make(1);
  const net::Facts& facts = world[0].facts();
  EXPECT_FALSE(facts.kind.empty());
  EXPECT_FALSE(facts.address.empty());
  EXPECT_GE(facts.descriptor, 0);
  EXPECT_GE(facts.message_bytes_max, 64u << 10);
  EXPECT_GE(facts.header_bytes_max, 1024u);
  EXPECT_GE(facts.offer_bytes_max, 64u << 20);
  EXPECT_GE(facts.queued_bytes_max, facts.message_bytes_max);
  EXPECT_GE(facts.offers_max, 16u);
  EXPECT_GT(facts.dead_after_s, 0);
}

TEST_P(NetConformance, BothSidesSeeTheConnectionAndWhoTheOtherIs) {
  auto world = make(3);
  const auto [a, b] = world.join(0, 1);
  const auto [c, d] = world.join(0, 2);
  EXPECT_NE(a, c);
  EXPECT_NE(world.of<net::Connected>(0, a)[0]->identity, "");
  EXPECT_NE(world.of<net::Connected>(0, a)[0]->identity,
            world.of<net::Connected>(0, c)[0]->identity);
  EXPECT_EQ(world.of<net::Connected>(1, b)[0]->identity,
            world.of<net::Connected>(2, d)[0]->identity);
  EXPECT_EQ(world.seen(0).size(), 2u);
}

TEST_P(NetConformance, MessagesArriveWholeAndInOrder) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const std::size_t largest = world[0].facts().message_bytes_max;
  const std::vector<std::size_t> sizes = {0, 1, 15, 16, 17, 4096, largest - 1, largest};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    ASSERT_TRUE(is_ok(world[0].send(a, pattern(sizes[i], 10 + i))));
  ASSERT_TRUE(is_ok(world[1].send(b, bytes_of("the other way"))));
  ASSERT_TRUE(world.until([&] {
    return world.count<net::Message>(1) == sizes.size() && world.count<net::Message>(0) == 1;
  }));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const net::Message& got = *world.of<net::Message>(1, b)[i];
    ASSERT_EQ(got.bytes.size(), sizes[i]);
    EXPECT_EQ(first_difference(got.bytes, 10 + i), sizes[i]);
  }
  EXPECT_EQ(world.of<net::Message>(0, a)[0]->bytes, bytes_of("the other way"));
}

TEST_P(NetConformance, AMessageThatIsTooLargeIsRefusedAndTheConnectionLives) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer large(world[0].facts().message_bytes_max + 1);
  const Buffer header(world[0].facts().header_bytes_max + 1);
  EXPECT_TRUE(fails_with(world[0].send(a, large), Code::too_large));
  EXPECT_TRUE(fails_with(world[0].offer(a, header, bytes_of("x")), Code::too_large));
  EXPECT_TRUE(fails_with(world[0].offer(a, {}, {}), Code::invalid));
  ASSERT_TRUE(is_ok(world[0].send(a, bytes_of("small"))));
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Message>(1, b) == 1; }));
}

TEST_P(NetConformance, AQueueThatIsFullSaysSoAndSaysWhenItIsNot) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  world.stall(1);
  const Buffer message = pattern(world[0].facts().message_bytes_max, 3);
  std::size_t sent = 0;
  Status status;
  while (status.ok() && sent < 10000) {  // what the network itself holds comes on top
    status = world[0].send(a, message);
    if (status.ok()) ++sent;
    world[0].progress();
  }
  ASSERT_TRUE(fails_with(status, Code::again));
  EXPECT_GE(sent * message.size(), world[0].facts().queued_bytes_max / 2);
  world.resume(1);
  ASSERT_TRUE(world.until([&, a = a, b = b] {
    return world.count<net::Ready>(0, a) == 1 && world.count<net::Message>(1, b) == sent;
  }));
  EXPECT_TRUE(is_ok(world[0].send(a, message)));
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Message>(1, b) == sent + 1; }));
  EXPECT_EQ(world.count<net::Ready>(0), 1u);
}

TEST_P(NetConformance, WhatIsOfferedMovesWhenItIsFetched) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{4095}, (std::size_t{1} << 20) + 3, std::size_t{20} << 20}) {
    const Buffer from = pattern(size, size);
    Buffer to(size);
    const std::size_t before = world.count<net::Offered>(1);
    const auto offer = world[0].offer(a, bytes_of("chunk 7"), from);
    ASSERT_TRUE(is_ok(offer));
    ASSERT_TRUE(world.until([&] { return world.count<net::Offered>(1) == before + 1; }));
    const net::Offered& offered = *world.of<net::Offered>(1, b).back();
    EXPECT_EQ(offered.header, bytes_of("chunk 7"));
    EXPECT_EQ(offered.bytes, size);
    EXPECT_EQ(offered.offer, *offer);
    EXPECT_EQ(world.count<net::Taken>(0), before) << "taken before it was fetched";
    ASSERT_TRUE(is_ok(world[1].fetch(b, offered.offer, to)));
    ASSERT_TRUE(world.until([&] {
      return world.count<net::Fetched>(1) == before + 1 && world.count<net::Taken>(0) == before + 1;
    }));
    EXPECT_TRUE(is_ok(world.of<net::Fetched>(1, b).back()->status));
    EXPECT_TRUE(is_ok(world.of<net::Taken>(0, a).back()->status));
    EXPECT_EQ(world.of<net::Taken>(0).back()->offer, *offer);
    EXPECT_EQ(first_difference(to, size), size);
  }
}

TEST_P(NetConformance, OffersAreFetchedInAnyOrderBothWaysAtOnce) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const net::PeerId peer[2] = {a, b};
  constexpr std::size_t offers = 12, size = 300'000;
  std::vector<Buffer> from[2], to[2];
  for (std::size_t i = 0; i < offers; ++i) {
    for (std::size_t end : {0u, 1u}) {
      from[end].push_back(pattern(size + i, 100 * end + i));
      to[end].emplace_back(size + i);
      ASSERT_TRUE(is_ok(world[end].offer(peer[end], {}, from[end][i])));
    }
  }
  ASSERT_TRUE(world.until([&] {
    return world.count<net::Offered>(0) == offers && world.count<net::Offered>(1) == offers;
  }));
  for (std::size_t i = offers; i-- > 0;) {
    for (std::size_t end : {0u, 1u})
      ASSERT_TRUE(is_ok(world[end].fetch(peer[end], i + 1, to[end][i])));
  }
  ASSERT_TRUE(world.until([&] {
    return world.count<net::Fetched>(0) + world.count<net::Fetched>(1) == 2 * offers &&
           world.count<net::Taken>(0) + world.count<net::Taken>(1) == 2 * offers;
  }));
  for (std::size_t i = 0; i < offers; ++i) {
    EXPECT_EQ(first_difference(to[0][i], 100 + i), size + i);
    EXPECT_EQ(first_difference(to[1][i], i), size + i);
  }
}

TEST_P(NetConformance, MessagesPassWhileBulkMoves) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(std::size_t{32} << 20, 5);
  Buffer to(from.size());
  const auto offer = announce(world, 0, a, 1, from);
  ASSERT_TRUE(is_ok(world[1].fetch(b, offer, to)));
  std::size_t sent = 0;
  ASSERT_TRUE(world.until([&, a = a] {
    if (sent < 50 && world[0].send(a, pattern(100, sent)).ok()) ++sent;
    return world.count<net::Fetched>(1) == 1 && world.count<net::Message>(1) == 50;
  }));
  EXPECT_EQ(first_difference(to, 5), to.size());
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ(first_difference(world.of<net::Message>(1)[i]->bytes, i), 100u);
}

TEST_P(NetConformance, WhatIsFetchedWaitsForOneThatPausesAndMessagesPass) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(std::size_t{32} << 20, 5), back = pattern(100'000, 6);
  Buffer to(from.size()), to_back(back.size());
  const auto offer = announce(world, 0, a, 1, from);
  const auto offer_back = announce(world, 1, b, 0, back);
  world[0].pause(true);
  world[0].pause(true);
  ASSERT_TRUE(is_ok(world[1].fetch(b, offer, to)));
  ASSERT_TRUE(is_ok(world[0].fetch(a, offer_back, to_back)));
  // A message each way after the fetch: whatever could have moved before it has.
  ASSERT_TRUE(is_ok(world[1].send(b, pattern(100, 1))));
  ASSERT_TRUE(world.until([&] { return world.count<net::Message>(0) == 1; }));
  ASSERT_TRUE(is_ok(world[0].send(a, pattern(100, 2))));
  ASSERT_TRUE(world.until(
      [&] { return world.count<net::Message>(1) == 1 && world.count<net::Fetched>(0) == 1; }));
  EXPECT_EQ(world.count<net::Fetched>(1), 0u);
  EXPECT_EQ(world.count<net::Taken>(0), 0u);
  world[0].pause(false);
  ASSERT_TRUE(world.until(
      [&] { return world.count<net::Fetched>(1) == 1 && world.count<net::Taken>(0) == 1; }));
  EXPECT_EQ(first_difference(to, 5), to.size());
  EXPECT_EQ(first_difference(to_back, 6), to_back.size());
}

TEST_P(NetConformance, OneThatPausesInTheMiddleGoesOnThere) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(std::size_t{8} << 20, 7);
  Buffer to(from.size());
  ASSERT_TRUE(is_ok(world[1].fetch(b, announce(world, 0, a, 1, from), to)));
  bool on = false;
  ASSERT_TRUE(world.until([&] {
    world[0].pause(on = !on);
    return world.count<net::Fetched>(1) == 1;
  }));
  EXPECT_EQ(first_difference(to, 7), to.size());
}

TEST_P(NetConformance, ARefusedOfferComesBack) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(1000, 1);
  const auto offer = announce(world, 0, a, 1, from);
  ASSERT_TRUE(is_ok(world[1].refuse(b, offer)));
  ASSERT_TRUE(world.until([&] { return world.count<net::Taken>(0) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Taken>(0)[0]->status, Code::again));
  Buffer to(1000);
  EXPECT_TRUE(fails_with(world[1].fetch(b, offer, to), Code::not_found));
  const auto second = announce(world, 0, a, 1, from);
  EXPECT_GT(second, offer);
  ASSERT_TRUE(is_ok(world[1].fetch(b, second, to)));
  ASSERT_TRUE(world.until([&] { return world.count<net::Fetched>(1) == 1; }));
  EXPECT_EQ(first_difference(to, 1), 1000u);
}

TEST_P(NetConformance, AFetchThatIsWrongIsRefused) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(1000, 1);
  const auto offer = announce(world, 0, a, 1, from);
  Buffer to(1001);
  EXPECT_TRUE(fails_with(world[1].fetch(b, offer, to), Code::invalid));
  EXPECT_TRUE(fails_with(world[1].fetch(b, offer + 1, to), Code::not_found));
  EXPECT_TRUE(fails_with(world[1].refuse(b, offer + 1), Code::not_found));
  to.resize(1000);
  ASSERT_TRUE(is_ok(world[1].fetch(b, offer, to)));
  EXPECT_TRUE(fails_with(world[1].fetch(b, offer, to), Code::not_found));
  ASSERT_TRUE(world.until([&] { return world.count<net::Fetched>(1) == 1; }));
}

TEST_P(NetConformance, TooManyOffersAreHeldBack) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const std::size_t most = world[0].facts().offers_max;
  const Buffer from = pattern(100, 1);
  for (std::size_t i = 0; i < most; ++i) ASSERT_TRUE(is_ok(world[0].offer(a, {}, from)));
  EXPECT_TRUE(fails_with(world[0].offer(a, {}, from), Code::again));
  ASSERT_TRUE(world.until([&] { return world.count<net::Offered>(1) == most; }));
  ASSERT_TRUE(is_ok(world[1].refuse(b, 1)));
  ASSERT_TRUE(world.until([&] { return world.count<net::Ready>(0) == 1; }));
  EXPECT_TRUE(is_ok(world[0].offer(a, {}, from)));
}

TEST_P(NetConformance, MessagesAndOffersHaveOneOrder) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer memory = pattern(64, 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(is_ok(world[0].send(a, bytes_of("before"))));
    ASSERT_TRUE(is_ok(world[0].offer(a, {}, memory)));
  }
  ASSERT_TRUE(world.until([&] { return world.count<net::Offered>(1) == 20; }));
  std::size_t messages = 0, offers = 0;
  for (const auto& event : world.seen(1)) {
    if (std::holds_alternative<net::Message>(event)) ++messages;
    if (std::holds_alternative<net::Offered>(event)) {
      EXPECT_EQ(++offers, messages);
    }
  }
}

TEST_P(NetConformance, NobodyAtTheAddress) {
  auto world = make(2);
  const std::string address = world[1].facts().address;
  world.destroy(1);
  const net::PeerId peer = world[0].connect(address);
  EXPECT_FALSE(world[0].send(peer, {}).ok());
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0, peer) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Closed>(0, peer)[0]->status, Code::agent_lost));
  EXPECT_EQ(world.seen(0).size(), 1u);
}

TEST_P(NetConformance, WhoeverAnswersNothingIsGivenUp) {
  auto world = make();
  world.stall(1);
  const net::PeerId peer = world[0].connect(world[1].facts().address);
  EXPECT_TRUE(fails_with(world[0].send(peer, {}), Code::state));
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0, peer) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Closed>(0, peer)[0]->status, Code::agent_lost));
}

TEST_P(NetConformance, CloseIsSeenOnceByBoth) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(1000, 1);
  const auto first = announce(world, 0, a, 1, from);
  announce(world, 1, b, 0, from);
  Buffer to(1000);
  world.stall(1);  // so that the fetch cannot be served
  ASSERT_TRUE(is_ok(world[0].fetch(a, 1, to)));
  world[0].close(a);
  EXPECT_TRUE(fails_with(world[0].send(a, {}), Code::agent_lost));
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0) == 1; }));
  EXPECT_TRUE(is_ok(world.of<net::Closed>(0, a)[0]->status));
  ASSERT_EQ(world.count<net::Taken>(0, a), 1u);
  EXPECT_EQ(world.of<net::Taken>(0)[0]->offer, first);
  EXPECT_TRUE(fails_with(world.of<net::Taken>(0)[0]->status, Code::state));
  ASSERT_EQ(world.count<net::Fetched>(0, a), 1u);
  EXPECT_TRUE(fails_with(world.of<net::Fetched>(0)[0]->status, Code::state));
  world.resume(1);
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(1) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Closed>(1, b)[0]->status, Code::agent_lost));
  ASSERT_EQ(world.count<net::Taken>(1, b), 1u);
  EXPECT_FALSE(world.of<net::Taken>(1)[0]->status.ok());
  EXPECT_TRUE(std::holds_alternative<net::Closed>(world.seen(1).back()));
  EXPECT_TRUE(fails_with(world[1].fetch(b, first, to), Code::agent_lost));
  world[0].close(a);
  world[1].close(b);
  world[0].close(12345);
  for (int i = 0; i < 5; ++i) world.step();
  EXPECT_EQ(world.count<net::Closed>(0), 1u);
  EXPECT_EQ(world.count<net::Closed>(1), 1u);
}

TEST_P(NetConformance, WhatWasSentBeforeTheEndArrivesBeforeItOrNotAtAll) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  for (std::size_t i = 0; i < 30; ++i) ASSERT_TRUE(is_ok(world[0].send(a, pattern(500, i))));
  world[0].progress();
  world[0].close(a);
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(1) == 1; }));
  const auto got = world.of<net::Message>(1, b);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(first_difference(got[i]->bytes, i), 500u) << i;
  EXPECT_TRUE(std::holds_alternative<net::Closed>(world.seen(1).back()));
}

TEST_P(NetConformance, ATransportThatIsDestroyedIsSeenByAllItsPeers) {
  auto world = make(4);
  const auto [a, b] = world.join(0, 1);
  world.join(0, 2);
  world.join(3, 0);
  const Buffer from = pattern(1 << 20, 1);
  Buffer to(from.size());
  const auto offer = announce(world, 0, a, 1, from);
  ASSERT_TRUE(is_ok(world[1].fetch(b, offer, to)));
  world.destroy(0);
  ASSERT_TRUE(world.until([&] {
    return world.count<net::Closed>(1) + world.count<net::Closed>(2) +
               world.count<net::Closed>(3) ==
           3;
  }));
  EXPECT_EQ(world.count<net::Fetched>(1), 1u);
}

TEST_P(NetConformance, ASilentPeerIsDeadAndHangsNobody) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const Buffer from = pattern(1000, 1);
  announce(world, 0, a, 1, from);
  announce(world, 1, b, 0, from);
  Buffer to(1000);
  world.stall(1);
  ASSERT_TRUE(is_ok(world[0].fetch(a, 1, to)));
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(0) == 1; }));
  EXPECT_TRUE(fails_with(world.of<net::Closed>(0, a)[0]->status, Code::agent_lost));
  EXPECT_EQ(world.count<net::Taken>(0, a), 1u);
  EXPECT_EQ(world.count<net::Fetched>(0, a), 1u);
  EXPECT_TRUE(std::holds_alternative<net::Closed>(world.seen(0).back()));
  world.resume(1);
  ASSERT_TRUE(world.until([&] { return world.count<net::Closed>(1) == 1; }));
  EXPECT_EQ(world.count<net::Taken>(1, b), 1u);
}

TEST_P(NetConformance, AnIdleConnectionLives) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const std::uint64_t end = deadline_in(2.5 * world[0].facts().dead_after_s);
  for (int i = 0; i < 1000; ++i) {
    world.step();
    if (system_clock().monotonic_ns() > end) break;
  }
  EXPECT_EQ(world.count<net::Closed>(0), 0u);
  ASSERT_TRUE(is_ok(world[0].send(a, bytes_of("still here"))));
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Message>(1, b) == 1; }));
}

TEST_P(NetConformance, TwoConnectionsBetweenTwoEndsAreTwoPeers) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  const auto [c, d] = world.join(1, 0);
  EXPECT_NE(a, d);
  EXPECT_NE(b, c);
  ASSERT_TRUE(is_ok(world[0].send(a, bytes_of("first"))));
  ASSERT_TRUE(is_ok(world[0].send(d, bytes_of("second"))));
  ASSERT_TRUE(world.until([&] { return world.count<net::Message>(1) == 2; }));
  EXPECT_EQ(world.of<net::Message>(1, b)[0]->bytes, bytes_of("first"));
  EXPECT_EQ(world.of<net::Message>(1, c)[0]->bytes, bytes_of("second"));
  world[0].close(a);
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Closed>(1, b) == 1; }));
  ASSERT_TRUE(is_ok(world[1].send(c, bytes_of("the other lives"))));
  ASSERT_TRUE(world.until([&, d = d] { return world.count<net::Message>(0, d) == 1; }));
}

TEST_P(NetConformance, AnEndMayConnectToItself) {
  auto world = make(1);
  const net::PeerId peer = world[0].connect(world[0].facts().address);
  ASSERT_TRUE(world.until([&] { return world.count<net::Connected>(0) == 2; }));
  ASSERT_TRUE(is_ok(world[0].send(peer, bytes_of("me"))));
  ASSERT_TRUE(world.until([&] { return world.count<net::Message>(0) == 1; }));
  EXPECT_NE(world.of<net::Message>(0)[0]->peer, peer);
}

TEST_P(NetConformance, TheDescriptorWakesAndRests) {
  auto world = make();
  const auto [a, b] = world.join(0, 1);
  pollfd one{world[1].facts().descriptor, POLLIN, 0};
  ASSERT_TRUE(world.until([&] {  // nothing is left to do
    world.step();
    return ::poll(&one, 1, 0) == 0;
  }));
  ASSERT_TRUE(is_ok(world[0].send(a, bytes_of("wake"))));
  world[0].progress();
  ASSERT_EQ(::poll(&one, 1, 10000), 1);
  ASSERT_TRUE(world.until([&, b = b] { return world.count<net::Message>(1, b) == 1; }));
}

}  // namespace backstay::testing
