#include "agent/group/fleet.h"

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

constexpr RunId run_of_fleet = 7;

// Notes what it is told; writes records at once, or when the test says so.
class Owner final : public FleetOwner, private PeerEvents {
 public:
  void record(tree::RunVersion version, Level level) override {
    asked.emplace_back(version, level);
    if (fleet != nullptr && records_at_once) write_records();
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
    for (const auto& [version, level] : std::exchange(asked, {})) fleet->recorded(version, level);
  }

  using Levels = std::vector<std::pair<tree::RunVersion, Level>>;
  Fleet* fleet = nullptr;
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
class FleetTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t members = 5;
  FleetTest() { spdlog::set_level(spdlog::level::critical); }  // what goes wrong here is meant to

  Fleet& add(NodeId node, std::uint64_t incarnation = 1,
             const std::vector<tree::Remembered>& remembered = {}, double heartbeat_s = 0.01) {
    owners_[node] = std::make_unique<Owner>();
    const FleetFacts facts{{run_of_fleet, node, incarnation}, members, heartbeat_s};
    auto fleet = Fleet::create(facts, network_.make(facts.self.text()), remembered, *owners_[node]);
    EXPECT_TRUE(fleet.ok());
    fleets_[node] = std::move(*fleet);
    owners_[node]->fleet = fleets_[node].get();
    return *fleets_[node];
  }
  void kill(NodeId node) {
    fleets_.erase(node);
    owners_.erase(node);
  }
  wire::Neighbours all() const {
    wire::Neighbours neighbours;
    for (NodeId node = 0; node < members; ++node) {
      const auto it = fleets_.find(node);
      const MemberId first{run_of_fleet, node, 1};
      neighbours.neighbours.push_back(
          {node, it == fleets_.end() ? first.text() : it->second->address(), "rack"});
    }
    return neighbours;
  }
  void start_all() {
    for (NodeId node = 0; node < members; ++node) add(node);
    for (auto& [node, fleet] : fleets_) ASSERT_TRUE(fleet->know(all()).ok());
    ASSERT_TRUE(until([&] { return fleets_[0]->present() == members; }));
  }
  // False if it does not happen in 20 s.
  template <typename Condition>
  bool until(Condition done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::vector<pollfd> descriptors;
      bool news = false;
      for (auto& [node, fleet] : fleets_) {
        descriptors.push_back({fleet->descriptor(), POLLIN, 0});
        news |= fleet->has_news();
      }
      ::poll(descriptors.data(), descriptors.size(), news ? 0 : 1000);
      for (auto& [node, fleet] : fleets_) fleet->progress();
    }
    return true;
  }
  // All that has been sent has arrived.
  void deliver() {
    for (bool more = true; more;) {
      more = false;
      for (auto& [node, fleet] : fleets_) {
        pollfd descriptor{fleet->descriptor(), POLLIN, 0};
        if (!fleet->has_news() && ::poll(&descriptor, 1, 0) == 0) continue;
        fleet->progress();
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
  std::map<NodeId, std::unique_ptr<Fleet>> fleets_;
};

Owner::Levels levels(VersionNumber version, Level level) {
  return {{tree::RunVersion{run_of_fleet, version}, level}};
}

TEST(FleetOfOne, DecidesAtOnce) {
  Owner owner;
  auto fleet = Fleet::create({{run_of_fleet, 0, 1}}, nullptr, {}, owner);
  ASSERT_TRUE(fleet.ok());
  owner.records_at_once = false;
  owner.fleet = fleet->get();
  EXPECT_TRUE((*fleet)->started());
  EXPECT_EQ((*fleet)->descriptor(), -1);
  (*fleet)->held(3, Level::local);
  EXPECT_EQ(owner.asked, levels(3, Level::local));
  EXPECT_THAT(owner.told, IsEmpty());
  owner.write_records();
  EXPECT_EQ(owner.told, levels(3, Level::local));
  EXPECT_EQ((*fleet)->announced({run_of_fleet, 3}), Level::local);
  (*fleet)->enter(1, 1);
  EXPECT_THAT(owner.rounds, ElementsAre(std::pair(1, 1)));
}

// record() answers from within: held -> record -> recorded -> announced in one call.
TEST(FleetOfOne, TheOwnerMayCallBack) {
  Owner owner;
  auto fleet = Fleet::create({{run_of_fleet, 0, 1}}, nullptr, {}, owner);
  ASSERT_TRUE(fleet.ok());
  owner.fleet = fleet->get();
  (*fleet)->held(3, Level::local);
  EXPECT_EQ(owner.told, levels(3, Level::local));
}

// The ranks of one node are late: nobody waits for a heartbeat, which would never come here.
TEST_F(FleetTest, WhoAsksTooEarlyIsAnsweredAtTheStart) {
  for (NodeId node = 0; node < members; ++node) add(node, 1, {}, 1000);
  for (NodeId node = 1; node < members; ++node) ASSERT_TRUE(fleets_[node]->know(all()).ok());
  deliver();
  EXPECT_EQ(owners_[0]->spoken.size(), members - 1);
  ASSERT_TRUE(fleets_[0]->know(all()).ok());
  EXPECT_TRUE(until([&] { return fleets_[0]->present() == members; }));
}

TEST_F(FleetTest, WrongListsOfMembersAreRefused) {
  Fleet& one = add(0);
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

TEST_F(FleetTest, TheListMayComeInSeveralMessages) {
  Fleet& one = add(0);
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

TEST_F(FleetTest, AVersionIsRecordedOnceAllHoldItAndAnnouncedOnceAllHaveTheRecord) {
  start_all();
  for (auto& [node, owner] : owners_) owner->records_at_once = false;
  for (NodeId node = 0; node + 1 < members; ++node) fleets_[node]->held(1, Level::local);
  ASSERT_TRUE(pass(3));
  EXPECT_TRUE(everybody([](const Owner& owner) { return owner.asked.empty(); }));
  fleets_[4]->held(1, Level::local);
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

TEST_F(FleetTest, ABarrierIsReleasedOnceAllHaveEntered) {
  start_all();
  for (NodeId node = 0; node + 1 < members; ++node) fleets_[node]->enter(1, 1);
  ASSERT_TRUE(pass(3));
  EXPECT_TRUE(everybody([](const Owner& owner) { return owner.rounds.empty(); }));
  fleets_[4]->enter(1, 1);
  ASSERT_TRUE(until(
      [&] { return everybody([](const Owner& owner) { return owner.rounds.size() == 1; }); }));
}

TEST_F(FleetTest, WhatOnePublishesAllOthersHear) {
  start_all();
  ASSERT_TRUE(fleets_[3]->publish("lacks", "all").ok());
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
  EXPECT_EQ(fleets_[0]->publish("", "x").error().code(), Code::invalid);
}

TEST_F(FleetTest, WhoDiesIsLostNothingIsAnnouncedAndWhoComesBackCompletesIt) {
  start_all();
  for (auto& [node, fleet] : fleets_) fleet->held(1, Level::local);
  ASSERT_TRUE(until([&] { return everybody([](const Owner& o) { return o.told.size() == 1; }); }));
  kill(3);
  for (auto& [node, fleet] : fleets_) fleet->held(2, Level::local);
  ASSERT_TRUE(until([&] {
    return everybody([](const Owner& owner) { return owner.gone == std::vector<NodeId>{3}; });
  }));
  EXPECT_EQ(numbers(fleets_[0]->lost()), std::vector<NodeId>{3});
  EXPECT_TRUE(everybody([](const Owner& o) { return o.told.size() == 1 && o.asked.empty(); }));

  // Its next life has the record of 1, and its part of 2.
  add(3, 2,
      {{{run_of_fleet, 1}, Level::local, Level::local},
       {{run_of_fleet, 2}, Level::local, Level::none}});
  for (auto& [node, fleet] : fleets_) ASSERT_TRUE(fleet->know(all()).ok());
  ASSERT_TRUE(until([&] {
    return everybody([](const Owner& o) {
      return !o.told.empty() && o.told.back() == levels(2, Level::local).back();
    });
  }));
  ASSERT_TRUE(until([&] {
    return everybody([&](const Owner& o) {
      return o.fleet->facts().self.node == 3 || o.back == std::vector<NodeId>{3};
    });
  }));
  EXPECT_TRUE(fleets_[0]->lost().empty());
}

TEST_F(FleetTest, AfterALaterRunHasBegunItTellsOfVersionsOnly) {
  start_all();
  fleets_[0]->retire();
  owners_[0]->heard.clear();
  owners_[0]->spoken.clear();
  const Buffer memory(8);
  Code refused = Code::ok;
  fleets_[1]->peers().send(0, wire::peer::HoldsSeen{1});
  fleets_[1]->peers().offer(0, 1, memory,
                            [&](const Status& status) { refused = status.error().code(); });
  for (auto& [node, fleet] : fleets_) {
    fleet->held(1, Level::local);
    fleet->enter(1, 1);
  }
  ASSERT_TRUE(until([&] {
    return refused == Code::again && owners_[0]->told == levels(1, Level::local) &&
           owners_[1]->rounds.size() == 1;
  }));
  kill(3);
  ASSERT_TRUE(until([&] { return owners_[1]->gone == std::vector<NodeId>{3}; }));
  ASSERT_TRUE(until([&] { return !fleets_[0]->lost().empty(); }));
  EXPECT_THAT(owners_[0]->heard, IsEmpty());
  EXPECT_THAT(owners_[0]->spoken, IsEmpty());
  EXPECT_THAT(owners_[0]->rounds, IsEmpty());
  EXPECT_THAT(owners_[0]->gone, IsEmpty());
}

TEST_F(FleetTest, WhoEndsHearsNothingAnyMore) {
  start_all();
  owners_[0]->heard.clear();
  fleets_[1]->peers().send(0, wire::peer::HoldsSeen{1});  // has arrived, and is not read yet
  fleets_.erase(0);
  EXPECT_THAT(owners_[0]->heard, IsEmpty());
}

}  // namespace
}  // namespace backstay::agent
