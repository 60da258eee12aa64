#include "agent/group/run_membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/loopback.h"

namespace backstay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr RunId run_of_membership = 7;

// Notes what it is told; writes records at once, or when the test says so.
class Owner final : public MembershipOwner, private PeerEvents {
 public:
  void record(tree::RunVersion version, Level level) override {
    asked.emplace_back(version, level);
    if (run_membership != nullptr && records_at_once) write_records();
  }
  void announced(tree::RunVersion version, Level level) override {
    told.emplace_back(version, level);
  }
  void membership(const tree::Membership& change) override {
    for (const NodeId node : numbers(change.lost)) gone.push_back(node);
    for (const NodeId node : numbers(change.back)) back.push_back(node);
  }
  void released(std::uint64_t barrier, std::uint64_t round) override {
    rounds.emplace_back(barrier, round);
  }
  void fact(const tree::Fact& fact) override {
    facts.push_back(std::to_string(fact.node) + " " + fact.name + " " + fact.value);
  }
  void reached(NodeId member) override { spoken.push_back(member); }
  void ticked() override { ++ticks; }
  PeerEvents& files() override { return *this; }

  void write_records() {
    for (const auto& [version, level] : std::exchange(asked, {}))
      run_membership->recorded(version, level);
  }

  using Levels = std::vector<std::pair<tree::RunVersion, Level>>;
  RunMembership* run_membership = nullptr;
  bool records_at_once = true;
  Levels asked;
  Levels told;
  std::vector<NodeId> gone;
  std::vector<NodeId> back;
  std::vector<NodeId> spoken;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> rounds;
  std::vector<std::string> facts;
  std::vector<std::string> heard;  // about files
  std::uint64_t ticks = 0;

 private:
  void message(NodeId from, const wire::peer::Message&) override {
    heard.push_back("message " + std::to_string(from));
  }
  void offered(NodeId from, std::uint64_t, std::uint64_t, OfferFrom) override {
    heard.push_back("offered " + std::to_string(from));
  }
  void lost(NodeId peer, const Error&) override { heard.push_back("lost " + std::to_string(peer)); }
};

// The members of a run, over a network in this process. Ticks are real time, a hundredth of a
// second long; nothing is waited for but by poll().
class RunMembershipTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t members = 5;
  RunMembershipTest() {
    spdlog::set_level(spdlog::level::critical);
  }  // what goes wrong here is meant to

  RunMembership& add(NodeId node, std::uint64_t incarnation = 1,
                     const std::vector<tree::Remembered>& remembered = {},
                     double heartbeat_s = 0.01) {
    owners_[node] = std::make_unique<Owner>();
    const MembershipFacts facts{{run_of_membership, node, incarnation}, members, heartbeat_s};
    auto run_membership =
        RunMembership::create(facts, network_.make(facts.self.text()), remembered, *owners_[node]);
    EXPECT_TRUE(run_membership.ok());
    run_memberships_[node] = std::move(*run_membership);
    owners_[node]->run_membership = run_memberships_[node].get();
    return *run_memberships_[node];
  }
  void kill(NodeId node) {
    run_memberships_.erase(node);
    owners_.erase(node);
  }
  wire::Neighbours all() const {
    wire::Neighbours neighbours;
    for (NodeId node = 0; node < members; ++node) {
      const auto it = run_memberships_.find(node);
      const MemberId first{run_of_membership, node, 1};
      neighbours.neighbours.push_back(
          {node, it == run_memberships_.end() ? first.text() : it->second->address(), "rack"});
    }
    return neighbours;
  }
  void start_all() {
    for (NodeId node = 0; node < members; ++node) add(node);
    for (auto& [node, run_membership] : run_memberships_)
      ASSERT_TRUE(run_membership->know(all()).ok());
    ASSERT_TRUE(until([&] { return run_memberships_[0]->present() == members; }));
  }
  // False if it does not happen in 20 s.
  template <typename Condition>
  bool until(Condition done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::vector<pollfd> descriptors;
      bool news = false;
      for (auto& [node, run_membership] : run_memberships_) {
        descriptors.push_back({run_membership->descriptor(), POLLIN, 0});
        news |= run_membership->has_news();
      }
      ::poll(descriptors.data(), descriptors.size(), news ? 0 : 1000);
      for (auto& [node, run_membership] : run_memberships_) run_membership->progress();
    }
    return true;
  }
  // All that has been sent has arrived.
  void deliver() {
    for (bool more = true; more;) {
      more = false;
      for (auto& [node, run_membership] : run_memberships_) {
        pollfd descriptor{run_membership->descriptor(), POLLIN, 0};
        if (!run_membership->has_news() && ::poll(&descriptor, 1, 0) == 0) continue;
        run_membership->progress();
        more = true;
      }
    }
  }
  // So many ticks of everybody: what was to happen has happened, or does not.
  bool pass(std::uint64_t ticks) {
    std::map<NodeId, std::uint64_t> ends;
    for (auto& [node, owner] : owners_) ends[node] = owner->ticks + ticks;
    return until([&] {
      return std::all_of(ends.begin(), ends.end(), [&](const auto& entry) {
        return owners_[entry.first]->ticks >= entry.second;
      });
    });
  }
  template <typename Condition>
  bool everybody(Condition holds) {
    return std::all_of(owners_.begin(), owners_.end(),
                       [&](const auto& entry) { return holds(*entry.second); });
  }

  ManualClock clock_;
  net::LoopbackNetwork network_{clock_};
  std::map<NodeId, std::unique_ptr<Owner>> owners_;
  std::map<NodeId, std::unique_ptr<RunMembership>> run_memberships_;
};

Owner::Levels levels(VersionNumber version, Level level) {
  return {{tree::RunVersion{run_of_membership, version}, level}};
}

TEST(FleetOfOne, DecidesAtOnce) {
  Owner owner;
  auto run_membership = RunMembership::create({{run_of_membership, 0, 1}}, nullptr, {}, owner);
  ASSERT_TRUE(run_membership.ok());
  owner.records_at_once = false;
  owner.run_membership = run_membership->get();
  EXPECT_TRUE((*run_membership)->started());
  EXPECT_EQ((*run_membership)->descriptor(), -1);
  (*run_membership)->held(3, Level::local);
  EXPECT_EQ(owner.asked, levels(3, Level::local));
  EXPECT_THAT(owner.told, IsEmpty());
  owner.write_records();
  EXPECT_EQ(owner.told, levels(3, Level::local));
  (*run_membership)->enter(1, 1);
  EXPECT_THAT(owner.rounds, ElementsAre(std::pair(1, 1)));
}

// record() answers from within: held -> record -> recorded -> announced in one call.
TEST(FleetOfOne, TheOwnerMayCallBack) {
  Owner owner;
  auto run_membership = RunMembership::create({{run_of_membership, 0, 1}}, nullptr, {}, owner);
  ASSERT_TRUE(run_membership.ok());
  owner.run_membership = run_membership->get();
  (*run_membership)->held(3, Level::local);
  EXPECT_EQ(owner.told, levels(3, Level::local));
}

// The ranks of one node are late: nobody waits for a heartbeat, which would never come here.
TEST_F(RunMembershipTest, WhoAsksTooEarlyIsAnsweredAtTheStart) {
  for (NodeId node = 0; node < members; ++node) add(node, 1, {}, 1000);
  for (NodeId node = 1; node < members; ++node)
    ASSERT_TRUE(run_memberships_[node]->know(all()).ok());
  deliver();
  EXPECT_EQ(owners_[0]->spoken.size(), members - 1);
  ASSERT_TRUE(run_memberships_[0]->know(all()).ok());
  EXPECT_TRUE(until([&] { return run_memberships_[0]->present() == members; }));
}

TEST_F(RunMembershipTest, WrongListsOfMembersAreRefused) {
  RunMembership& one = add(0);
  const auto refused = [&](const wire::Neighbours& list) {
    const Status status = one.know(list);
    return !status.ok() && status.error().code() == Code::invalid;
  };
  wire::Neighbours missing = all();
  missing.neighbours.erase(missing.neighbours.begin() + 3);
  EXPECT_TRUE(refused(missing));
  wire::Neighbours beyond = all();
  beyond.neighbours.push_back({members, "somewhere", ""});
  EXPECT_TRUE(refused(beyond));
  wire::Neighbours empty = all();
  empty.neighbours[2].address.clear();
  EXPECT_TRUE(refused(empty));
  wire::Neighbours too_long = all();
  too_long.neighbours[2].address.assign(tree::Tree::address_bytes_max + 1, 'x');
  EXPECT_TRUE(refused(too_long));
  EXPECT_FALSE(one.started());
}

TEST_F(RunMembershipTest, TheListMayComeInSeveralMessages) {
  RunMembership& one = add(0);
  wire::Neighbours first = all();
  wire::Neighbours last = all();
  first.last = false;
  first.neighbours.resize(2);
  last.neighbours.erase(last.neighbours.begin(), last.neighbours.begin() + 2);
  EXPECT_TRUE(one.know(first).ok());
  EXPECT_FALSE(one.started());
  EXPECT_TRUE(one.know(last).ok());
  EXPECT_TRUE(one.started());
  EXPECT_EQ(one.domains(), std::vector<std::string>(members, "rack"));
}

TEST_F(RunMembershipTest, AVersionIsRecordedOnceAllHoldItAndAnnouncedOnceAllHaveTheRecord) {
  start_all();
  for (auto& [node, owner] : owners_) owner->records_at_once = false;
  for (NodeId node = 0; node + 1 < members; ++node) run_memberships_[node]->held(1, Level::local);
  ASSERT_TRUE(pass(3));
  EXPECT_TRUE(everybody([](const Owner& owner) { return owner.asked.empty(); }));
  run_memberships_[4]->held(1, Level::local);
  ASSERT_TRUE(until([&] {
    return everybody([](const Owner& o) { return o.asked == levels(1, Level::local); });
  }));
  for (NodeId node = 1; node < members; ++node) owners_[node]->write_records();
  ASSERT_TRUE(pass(3));
  EXPECT_TRUE(everybody([](const Owner& owner) { return owner.told.empty(); }));
  owners_[0]->write_records();
  ASSERT_TRUE(until(
      [&] { return everybody([](const Owner& o) { return o.told == levels(1, Level::local); }); }));
  ASSERT_TRUE(pass(3));  // once
  EXPECT_TRUE(everybody([](const Owner& o) { return o.told.size() == 1 && o.asked.empty(); }));
}

TEST_F(RunMembershipTest, ABarrierIsReleasedOnceAllHaveEntered) {
  start_all();
  for (NodeId node = 0; node + 1 < members; ++node) run_memberships_[node]->enter(1, 1);
  ASSERT_TRUE(pass(3));
  EXPECT_TRUE(everybody([](const Owner& owner) { return owner.rounds.empty(); }));
  run_memberships_[4]->enter(1, 1);
  ASSERT_TRUE(until(
      [&] { return everybody([](const Owner& owner) { return owner.rounds.size() == 1; }); }));
}

TEST_F(RunMembershipTest, WhatOnePublishesAllOthersHear) {
  start_all();
  ASSERT_TRUE(run_memberships_[3]->publish("lacks", "all").ok());
  ASSERT_TRUE(until([&] {
    return std::ranges::all_of(owners_, [](const auto& entry) {
      return entry.first == 3 || !entry.second->facts.empty();
    });
  }));
  for (const auto& [node, owner] : owners_) {
    if (node == 3) {
      EXPECT_THAT(owner->facts, IsEmpty());
    } else {
      EXPECT_THAT(owner->facts, ElementsAre("3 lacks all"));
    }
  }
  EXPECT_EQ(run_memberships_[0]->publish("", "x").error().code(), Code::invalid);
}

TEST_F(RunMembershipTest, WhoDiesIsLostNothingIsAnnouncedAndWhoComesBackCompletesIt) {
  start_all();
  for (auto& [node, run_membership] : run_memberships_) run_membership->held(1, Level::local);
  ASSERT_TRUE(until([&] { return everybody([](const Owner& o) { return o.told.size() == 1; }); }));
  kill(3);
  for (auto& [node, run_membership] : run_memberships_) run_membership->held(2, Level::local);
  ASSERT_TRUE(until([&] {
    return everybody([](const Owner& owner) { return owner.gone == std::vector<NodeId>{3}; });
  }));
  EXPECT_EQ(numbers(run_memberships_[0]->lost()), std::vector<NodeId>{3});
  EXPECT_TRUE(everybody([](const Owner& o) { return o.told.size() == 1 && o.asked.empty(); }));

  // Its next life has the record of 1, and its part of 2.
  add(3, 2,
      {{{run_of_membership, 1}, Level::local, Level::local},
       {{run_of_membership, 2}, Level::local, Level::none}});
  for (auto& [node, run_membership] : run_memberships_)
    ASSERT_TRUE(run_membership->know(all()).ok());
  ASSERT_TRUE(until([&] {
    return everybody([](const Owner& o) {
      return !o.told.empty() && o.told.back() == levels(2, Level::local).back();
    });
  }));
  ASSERT_TRUE(until([&] {
    return everybody([&](const Owner& o) {
      return o.run_membership->facts().self.node == 3 || o.back == std::vector<NodeId>{3};
    });
  }));
  EXPECT_TRUE(run_memberships_[0]->lost().empty());
}

TEST_F(RunMembershipTest, AfterALaterRunHasBegunItTellsOfVersionsOnly) {
  start_all();
  run_memberships_[0]->retire();
  owners_[0]->heard.clear();
  owners_[0]->spoken.clear();
  const Buffer memory(8);
  Code refused = Code::ok;
  run_memberships_[1]->peers().send(0, wire::peer::HoldsSeen{1});
  run_memberships_[1]->peers().offer(
      0, 1, memory, [&](const Status& status) { refused = status.error().code(); });
  for (auto& [node, run_membership] : run_memberships_) {
    run_membership->held(1, Level::local);
    run_membership->enter(1, 1);
  }
  ASSERT_TRUE(until([&] {
    return refused == Code::again && owners_[0]->told == levels(1, Level::local) &&
           owners_[1]->rounds.size() == 1;
  }));
  kill(3);
  ASSERT_TRUE(until([&] { return owners_[1]->gone == std::vector<NodeId>{3}; }));
  ASSERT_TRUE(until([&] { return !run_memberships_[0]->lost().empty(); }));
  EXPECT_THAT(owners_[0]->heard, IsEmpty());
  EXPECT_THAT(owners_[0]->spoken, IsEmpty());
  EXPECT_THAT(owners_[0]->rounds, IsEmpty());
  EXPECT_THAT(owners_[0]->gone, IsEmpty());
}

TEST_F(RunMembershipTest, WhoEndsHearsNothingAnyMore) {
  start_all();
  owners_[0]->heard.clear();
  run_memberships_[1]->peers().send(0,
                                    wire::peer::HoldsSeen{1});  // has arrived, and is not read yet
  run_memberships_.erase(0);
  EXPECT_THAT(owners_[0]->heard, IsEmpty());
}

}  // namespace
}  // namespace backstay::agent
