#include "agent/group/status_poll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "agent/server/status.h"

namespace backstay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps what is sent; the test says what comes back.
class PlayedPeers final : public Peers {
 public:
  explicit PlayedPeers(std::uint32_t members) : members_(members) {}
  NodeId self() const override { return 1; }
  std::uint32_t members() const override { return members_; }
  void send(NodeId to, wire::peer::Message message) override {
    sent.emplace_back(to, std::move(message));
  }
  void offer(NodeId, std::uint64_t, Bytes, Ended) override {}
  void fetch(OfferFrom, std::span<std::byte>, Ended) override {}
  void refuse(OfferFrom) override {}

  std::vector<NodeId> asked() const {
    std::vector<NodeId> nodes;
    for (const auto& [to, message] : sent) {
      if (std::holds_alternative<wire::peer::Look>(message)) nodes.push_back(to);
    }
    return nodes;
  }
  std::uint64_t ticket() const { return std::get<wire::peer::Look>(sent.back().second).ticket; }
  std::vector<std::pair<NodeId, wire::peer::Message>> sent;

 private:
  const std::uint32_t members_;
};

wire::peer::Seen seen(std::uint64_t ticket, const char* host) {
  wire::peer::Seen all;
  all.ticket = ticket;
  all.host = host;
  return all;
}

// It has file 4 of every version.
wire::peer::Seen own(VersionOfRun version) {
  wire::peer::Seen here = seen(0, "here");
  if (version.first != 0) here.files = {4};
  return here;
}

struct StatusPollTest : ::testing::Test {
  ManualClock clock;
  PlayedPeers peers{4};
  StatusPoll status_poll{peers, clock};
};

TEST_F(StatusPollTest, IsDoneOnceAllHaveAnswered) {
  const auto gathered = status_poll.ask(own({}), {}, 64);
  EXPECT_THAT(peers.asked(), ElementsAre(0, 2, 3));
  const std::uint64_t ticket = peers.ticket();
  for (const NodeId node : {3u, 0u, 2u}) {
    EXPECT_FALSE(gathered->done);
    status_poll.on(node, seen(ticket, "there"));
  }
  EXPECT_TRUE(gathered->done);
  ASSERT_EQ(gathered->members.size(), 4u);
  EXPECT_EQ(gathered->members[1].seen.host, "here");
  EXPECT_EQ(gathered->members[3].seen.host, "there");
  EXPECT_EQ(status_poll.pump(), no_deadline);
  status_poll.on(2, seen(ticket, "late"));  // and dropped
}

TEST_F(StatusPollTest, WhoDoesNotAnswerInTimeIsShownWithout) {
  const auto gathered = status_poll.ask(own({}), {}, 64);
  status_poll.on(0, seen(peers.ticket(), "n0"));
  status_poll.on(0, seen(peers.ticket(), "again"));
  status_poll.on(1, seen(peers.ticket(), "not asked"));
  status_poll.lost(3, Error(Code::agent_lost, "it cannot be reached"));
  EXPECT_EQ(status_poll.pump(), clock.monotonic_ns() + StatusPoll::patience_ns);
  clock.advance(StatusPoll::patience_ns - 1);
  status_poll.pump();
  EXPECT_FALSE(gathered->done);
  clock.advance(1);
  EXPECT_EQ(status_poll.pump(), no_deadline);
  ASSERT_TRUE(gathered->done);
  EXPECT_EQ(gathered->members[0].seen.host, "n0");
  EXPECT_EQ(gathered->members[2].state, MemberSeen::State::no_answer);
  EXPECT_EQ(gathered->members[3].state, MemberSeen::State::no_answer);
  EXPECT_EQ(gathered->members[3].why, "it cannot be reached");
}

TEST_F(StatusPollTest, WhoIsLostIsNotAsked) {
  const auto gathered = status_poll.ask(own({}), tree::NodeSet::of({{0, 1}, {2, 2}}), 64);
  EXPECT_THAT(peers.asked(), IsEmpty());
  EXPECT_TRUE(gathered->done);
  EXPECT_EQ(gathered->members[2].state, MemberSeen::State::lost);
}

TEST_F(StatusPollTest, AsksNoMoreThanItMay) {
  PlayedPeers many(200);
  StatusPoll large(many, clock);
  const auto gathered = large.ask(own({}), {}, 1000);
  EXPECT_EQ(many.asked().size(), StatusPoll::asked_max);
  EXPECT_EQ(gathered->members.size(), StatusPoll::asked_max + 1);
  EXPECT_EQ(gathered->left_out, 200 - 1 - StatusPoll::asked_max);
  EXPECT_EQ(large.ask(own({}), {}, 2)->members.size(), 3u);
}

TEST_F(StatusPollTest, AnswersWhoLooks) {
  status_poll.on(2, wire::peer::Look{77, 0, 0}, own({0, 0}));
  ASSERT_EQ(peers.sent.size(), 1u);
  EXPECT_EQ(peers.sent[0].first, 2u);
  const auto& answer = std::get<wire::peer::Seen>(peers.sent[0].second);
  EXPECT_EQ(answer.ticket, 77u);
  EXPECT_EQ(answer.host, "here");
  EXPECT_THAT(answer.files, IsEmpty());
}

TEST_F(StatusPollTest, AsksForTheFilesOfAVersion) {
  const auto gathered = status_poll.ask(own({12, 99}), {}, 64, {12, 99});
  const auto& look = std::get<wire::peer::Look>(peers.sent.back().second);
  EXPECT_EQ(look.version, 12u);
  EXPECT_EQ(look.run, 99u);
  EXPECT_THAT(gathered->members[1].seen.files, ElementsAre(4));
  status_poll.on(2, wire::peer::Look{78, 12, 99}, own({12, 99}));
  EXPECT_THAT(std::get<wire::peer::Seen>(peers.sent.back().second).files, ElementsAre(4));
}

TEST(StatusPoll, ThatEndsLeavesNobodyWaiting) {
  const ManualClock clock;
  PlayedPeers peers(3);
  std::shared_ptr<const Gathered> gathered;
  {
    StatusPoll status_poll(peers, clock);
    gathered = status_poll.ask(own({}), {}, 64);
    EXPECT_FALSE(gathered->done);
  }
  EXPECT_TRUE(gathered->done);
}

TEST(Where, SaysWhatKeepsANodeFromWriting) {
  Gathered gathered;
  gathered.members.push_back({1, MemberSeen::State::ok, "", seen(0, "n1")});
  wire::peer::Seen& one = gathered.members.back().seen;
  one.lacks = "version 4 not local: full";
  one.lacks_level = Level::local;
  one.lacks_code = Code::no_space;
  const auto answer =
      nlohmann::json::parse(to_json(format::CommitRecord{}, Level::local, gathered));
  const auto& member = answer.at("members").at(0);
  EXPECT_EQ(member.at("lacks"), "version 4 not local: full");
  EXPECT_EQ(member.at("lacks_level"), "local");
  EXPECT_EQ(member.at("lacks_code"), "no_space");
}

}  // namespace
}  // namespace backstay::agent
