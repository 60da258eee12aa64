#include "agent/redundancy/object_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "hears.h"

namespace backstay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using wire::peer::Holder;

// Members whose messages arrive in order, when the test says so. A cut member gets nothing, and its
// peers are told when they talk to it.
class Members {
 public:
  explicit Members(std::uint32_t count) {
    for (NodeId node = 0; node < count; ++node) {
      ends_.push_back(std::make_unique<End>(*this, node, count));
    }
  }
  ObjectDirectory& operator[](NodeId node) { return ends_[node]->directory; }
  std::size_t sent = 0;

  void deliver() {
    while (!on_the_way_.empty()) {
      auto [from, to, message] = std::move(on_the_way_.front());
      on_the_way_.pop_front();
      if (cut_.count(to) != 0) {
        (*this)[from].lost(to, Error(Code::agent_lost, "cut"));
      } else if (cut_.count(from) == 0) {
        EXPECT_TRUE(testing::hears((*this)[to], from, message));
      }
    }
  }
  // Everybody learns of it.
  void cut(NodeId node) {
    cut_.insert(node);
    for (auto& end : ends_) {
      if (end->node == node) continue;
      end->directory.lost(node, Error(Code::agent_lost, "cut"));
      (*this)[node].lost(end->node, Error(Code::agent_lost, "cut"));
    }
  }
  void heal(NodeId node) {
    cut_.erase(node);
    for (auto& end : ends_) {
      if (end->node != node) end->directory.back(node);
    }
    deliver();
  }
  void open() {
    deliver();
    for (auto& end : ends_) {
      EXPECT_TRUE(end->directory.complete());
      end->directory.open();
    }
  }
  // What each has, by number; those that are left out have nothing.
  void open_with(const std::vector<std::vector<HeldFile>>& files) {
    for (std::size_t node = 0; node < ends_.size(); ++node) {
      ends_[node]->directory.announce(node < files.size() ? files[node] : std::vector<HeldFile>());
    }
    open();
  }
  // Another agent in the place of one that was cut.
  void begin_anew(NodeId node) {
    replace(node);
    heal(node);
  }
  // The same; no agent has heard of it yet.
  void replace(NodeId node) {
    cut_.erase(node);
    ends_[node] = std::make_unique<End>(*this, node, static_cast<std::uint32_t>(ends_.size()));
  }
  Result<std::vector<Holder>> try_lookup(NodeId from, VersionOfRun version, Rank rank) {
    std::optional<Result<std::vector<Holder>>> found;
    (*this)[from].lookup(version, rank, [&](auto holders) { found = std::move(holders); });
    EXPECT_FALSE(found.has_value()) << "from within the call";
    deliver();
    return found ? *found : Error(Code::timeout, "no answer");
  }
  std::vector<Holder> lookup(NodeId from, VersionOfRun version, Rank rank) {
    const auto found = try_lookup(from, version, rank);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::vector<Holder>{};
  }

 private:
  struct End final : Peers {
    End(Members& world, NodeId self_number, std::uint32_t number_of_members)
        : all(world), node(self_number), count(number_of_members), directory(*this) {}
    NodeId self() const override { return node; }
    std::uint32_t members() const override { return count; }
    void send(NodeId to, wire::peer::Message message) override {
      ++all.sent;
      all.on_the_way_.emplace_back(node, to, std::move(message));
    }
    void offer(NodeId, std::uint64_t, Bytes, Ended) override { FAIL(); }
    void fetch(OfferFrom, std::span<std::byte>, Ended) override { FAIL(); }
    void refuse(OfferFrom) override { FAIL(); }
    Members& all;
    const NodeId node;
    const std::uint32_t count;
    ObjectDirectory directory;
  };
  std::vector<std::unique_ptr<End>> ends_;
  std::deque<std::tuple<NodeId, NodeId, wire::peer::Message>> on_the_way_;
  std::set<NodeId> cut_;
};

constexpr RunId run = 11;
HeldFile file_of(NodeId node, std::vector<Rank> ranks, VersionNumber version = 7, RunId of = run) {
  return {{version, of, node}, 4, 8, 4096, std::move(ranks), std::nullopt};
}

TEST(ObjectDirectory, KnowsEveryHolderOfAnObject) {
  Members all(4);
  for (NodeId node = 0; node < 4; ++node) {
    const NodeId other = (node + 1) % 4;
    all[node].announce(
        {file_of(node, {2 * node, 2 * node + 1}), file_of(other, {2 * other, 2 * other + 1})});
    EXPECT_FALSE(all[node].complete());
  }
  all.open();
  for (Rank rank = 0; rank < 8; ++rank) {
    const NodeId owner = rank / 2;
    EXPECT_THAT(all.lookup(3, {7, run}, rank),
                UnorderedElementsAre(Holder{owner, owner}, Holder{(owner + 3) % 4, owner}));
  }
  EXPECT_THAT(all.lookup(0, {7, run}, 8), IsEmpty());
  EXPECT_THAT(all.lookup(0, {7, run + 1}, 0), IsEmpty()) << "another run's version 7";
  EXPECT_THAT(all.lookup(0, {6, run}, 0), IsEmpty());
}

TEST(ObjectDirectory, WithNothingToSayIsCompleteOnceTheOthersKnowThat) {
  Members all(2);
  EXPECT_FALSE(all[0].complete());
  all[0].announce({});
  EXPECT_FALSE(all[0].complete());
  all.deliver();
  EXPECT_TRUE(all[0].complete());
  Members alone(1);
  alone[0].announce({});
  EXPECT_TRUE(alone[0].complete());
}

TEST(ObjectDirectory, IsNotCompleteBeforeEveryRegistrarHasAnswered) {
  Members all(3);
  all[0].announce({file_of(0, {0, 1, 2})});
  EXPECT_FALSE(all[0].complete());
  all[0].lost(1, Error(Code::agent_lost, "gone"));  // it cannot answer any more
  EXPECT_FALSE(all[0].complete());
  all.deliver();
  EXPECT_TRUE(all[0].complete());
}

TEST(ObjectDirectory, LookupsWaitForTheOthers) {
  Members all(2);
  std::vector<Holder> found;
  bool answered = false;
  all[0].lookup({7, run}, 1, [&](auto holders) {
    answered = true;
    found = *holders;
  });
  all.deliver();
  EXPECT_FALSE(answered);
  all[1].announce({file_of(5, {1})});
  all[0].announce({});
  all.open();
  all.deliver();
  EXPECT_THAT(found, ElementsAre(Holder{1, 5}));
}

TEST(ObjectDirectory, WhatComesAndGoesLaterIsTold) {
  Members all(2);
  all.open_with({});
  all[1].add(file_of(0, {0, 1}));
  all.deliver();
  EXPECT_THAT(all.lookup(0, {7, run}, 1), ElementsAre(Holder{1, 0}));
  EXPECT_EQ(all[1].held().node_with({7, run}, 1), NodeId{0});
  all[1].remove({7, run, 0});
  all[1].remove({7, run, 3});  // nothing that we had
  all.deliver();
  EXPECT_THAT(all.lookup(0, {7, run}, 1), IsEmpty());
  EXPECT_EQ(all[1].held().node_with({7, run}, 1), std::nullopt);
}

TEST(ObjectDirectory, TheRanksOfALostNodeAreSpreadOverItsKeepers) {
  constexpr std::uint32_t members = 16;
  constexpr Rank ranks = 320;
  Members all(members);
  std::vector<Rank> of_node_0;
  for (Rank rank = 0; rank < ranks; ++rank) of_node_0.push_back(rank);
  const std::vector<HeldFile> file = {file_of(0, of_node_0)};
  const std::vector<std::vector<HeldFile>> on_four = {{}, file, file, file, file};
  all.open_with(on_four);
  std::map<NodeId, int> first;
  for (Rank rank = 0; rank < ranks; ++rank) ++first[all.lookup(9, {7, run}, rank).front().agent];
  ASSERT_EQ(first.size(), 4u);
  for (const auto& [agent, times] : first) EXPECT_NEAR(times, ranks / 4, ranks / 40) << agent;
  // Even where every registrar is asked only once.
  Members fresh(members);
  fresh.open_with(on_four);
  first.clear();
  for (Rank rank = 0; rank < members; ++rank) {
    ++first[fresh.lookup(9, {7, run}, rank).front().agent];
  }
  EXPECT_EQ(first.size(), 4u);
}

TEST(ObjectDirectory, ALostMemberIsNotGivenOutUntilItIsBack) {
  Members all(3);
  all.open_with({{}, {file_of(0, {0, 1, 2})}, {file_of(0, {0, 1, 2})}});
  all.cut(1);
  EXPECT_THAT(all.lookup(0, {7, run}, 0), ElementsAre(Holder{2, 0}));
  all.heal(1);
  EXPECT_THAT(all.lookup(0, {7, run}, 0), UnorderedElementsAre(Holder{1, 0}, Holder{2, 0}));
  // It had lost what it knew as a registrar.
  EXPECT_THAT(all.lookup(0, {7, run}, 1), UnorderedElementsAre(Holder{1, 0}, Holder{2, 0}));
  EXPECT_TRUE(all[1].complete());
}

// It may have it still: whoever took it for lost would go on from an older version.
TEST(ObjectDirectory, WhatOnlyALostMemberHasIsNotTakenForGone) {
  Members all(3);
  all.open_with({{}, {file_of(1, {0, 1})}});
  all.cut(1);
  for (const NodeId asking : {0u, 2u}) {
    const auto found = all.try_lookup(asking, {7, run}, 0);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code(), Code::agent_lost);
    EXPECT_EQ(found.error().message(), "only node 1 has it, and cannot be reached now");
    EXPECT_THAT(all.lookup(asking, {9, run}, 0), IsEmpty()) << "nobody ever had that";
  }
  all.heal(1);
  EXPECT_THAT(all.lookup(0, {7, run}, 0), ElementsAre(Holder{1, 1}));
}

TEST(ObjectDirectory, WhoComesBackWithAnEmptyDiskHasSaidSo) {
  Members all(3);
  all.open_with({{}, {file_of(1, {0, 2})}});
  all.cut(1);
  all.begin_anew(1);
  EXPECT_FALSE(all.try_lookup(2, {7, run}, 0).ok()) << "it has said nothing yet";
  all[1].announce({});
  all.deliver();
  for (const Rank rank : {0u, 2u}) EXPECT_THAT(all.lookup(2, {7, run}, rank), IsEmpty());
}

TEST(ObjectDirectory, ARegistrarThatHasJustBegunAnswersOnceAllHaveSaidWhatTheyHold) {
  Members all(3);
  all.open_with({{file_of(0, {1})}});
  all.cut(1);
  all.replace(1);  // it keeps the list of rank 1, and has heard of nothing
  EXPECT_THAT(all.lookup(2, {7, run}, 1), ElementsAre(Holder{0, 0}));
}

TEST(ObjectDirectory, ARegistrarThatHasJustBegunDoesNotTakeForGoneWhatALostMemberMayHave) {
  Members all(3);
  all.open_with({{file_of(0, {1})}});
  all.cut(1);
  all.replace(1);
  all.cut(0);
  const auto found = all.try_lookup(2, {7, run}, 1);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Code::agent_lost);
}

TEST(ObjectDirectory, ALookupAtALostRegistrarEnds) {
  Members all(2);
  all.open_with({});
  std::optional<Code> code;
  all[0].lookup({7, run}, 1, [&](auto holders) { code = holders.error().code(); });
  all.cut(1);
  EXPECT_EQ(code, Code::agent_lost);
  code.reset();
  all[0].lookup({7, run}, 1, [&](auto holders) { code = holders.error().code(); });
  all.deliver();
  EXPECT_EQ(code, Code::agent_lost);
}

TEST(ObjectDirectory, LookupsDoNotWaitForWhoIsLostBeforeItHasSaidAnything) {
  Members all(3);
  for (const NodeId node : {0u, 1u}) all[node].announce({});
  std::optional<Code> code;
  const auto look = [&] {
    code.reset();
    all[0].lookup({7, run}, 1, [&](auto holders) { code = holders.error().code(); });
  };
  look(), all.deliver();
  EXPECT_FALSE(code);
  all.cut(2);
  EXPECT_EQ(code, Code::agent_lost);
  look(), all.deliver();
  EXPECT_EQ(code, Code::agent_lost) << "it is lost still";
  all.heal(2);
  all[2].announce({file_of(1, {1})});
  all.open();
  EXPECT_THAT(all.lookup(0, {7, run}, 1), ElementsAre(Holder{2, 1}));
}

TEST(ObjectDirectory, ManyObjectsGoInSeveralMessagesAndAreBounded) {
  Members all(1);
  std::vector<Rank> ranks(wire::list_entries_max * 2 + 1);
  for (Rank rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  all[0].announce({file_of(0, ranks)});
  EXPECT_EQ(all.sent, 3u);
  all.open();
  EXPECT_THAT(all.lookup(0, {7, run}, 2048), ElementsAre(Holder{0, 0}));
  for (VersionNumber version = 8; version < 8 + 40; ++version) {
    all[0].add(file_of(0, ranks, version));
  }
  all.deliver();
  EXPECT_THAT(all.lookup(0, {30, run}, 5), ElementsAre(Holder{0, 0}));
  EXPECT_THAT(all.lookup(0, {47, run}, 5), IsEmpty()) << "more than a member may have";
  for (VersionNumber version = 8; version < 8 + 30; ++version) all[0].remove({version, run, 0});
  all[0].add(file_of(1, {5}, 47));
  all.deliver();
  EXPECT_THAT(all.lookup(0, {47, run}, 5), ElementsAre(Holder{0, 1})) << "there is room again";
}

TEST(ObjectDirectory, WhatIsSaidOfOthersRanksIsIgnored) {
  Members all(2);
  all[0].on(1, wire::peer::Holds{1, 7, run, 1, false, false, {0, 1}});
  all[0].on(1, wire::peer::HoldsSeen{99});
  all[0].on(1, wire::peer::Holders{99, {}});
  EXPECT_FALSE(all[0].on(1, wire::peer::No{99, Code::not_found, ""}));
  all[0].announce({});
  all[1].announce({});
  all.open();
  EXPECT_THAT(all.lookup(0, {7, run}, 0), ElementsAre(Holder{1, 1}));
  EXPECT_THAT(all.lookup(0, {7, run}, 1), IsEmpty());
}

TEST(HeldFiles, TellRunsWithTheSameVersionNumberApart) {
  HeldFiles held;
  held.add(file_of(0, {0, 1}, 7, 11));
  held.add(file_of(3, {0}, 7, 12));
  EXPECT_EQ(held.node_with({7, 11}, 0), NodeId{0});
  EXPECT_EQ(held.node_with({7, 12}, 0), NodeId{3});
  EXPECT_EQ(held.node_with({7, 12}, 1), std::nullopt);
  held.remove({7, 12, 3});
  EXPECT_EQ(held.node_with({7, 12}, 0), std::nullopt);
}

}  // namespace
}  // namespace backstay::agent
