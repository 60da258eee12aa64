#include "bin/commands/copies.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json member(NodeId node, std::vector<NodeId> files) {
  return {{"node", node},
          {"state", "ok"},
          {"host", "n"},
          {"files", std::move(files)},
          {"parity", nullptr}};
}
Json member_with_parity(NodeId node, NodeId of, std::vector<NodeId> group, std::uint32_t blocks) {
  Json all = member(node, {node});
  all["parity"] = {{"of", of}, {"blocks", blocks}, {"group", std::move(group)}};
  return all;
}
Json lacking(Json one, Level level, Code code, const std::string& why) {
  one["lacks"] = fmt::format("version 4 not {}: {}", level_name(level), why);
  one["lacks_level"] = level_name(level);
  one["lacks_code"] = code_name(code);
  return one;
}
Json failing(NodeId node, std::vector<NodeId> files) {
  return lacking(member(node, std::move(files)), Level::local, Code::io,
                 "write: Input/output error");
}
Json silent(NodeId node) { return {{"node", node}, {"state", "lost"}, {"why", "silence"}}; }
Json answer(std::uint32_t nodes, Json members, std::uint32_t left_out = 0,
            const char* level = "protected") {
  return {{"version", 3},   {"run", "00000000000000aa"},     {"level", level},
          {"nodes", nodes}, {"members", std::move(members)}, {"members_left_out", left_out}};
}

TEST(Copies, OneReplicaBearsAnyOneNode) {
  const auto copies =
      copies_of(answer(3, {member(0, {0, 2}), member(1, {1, 0}), member(2, {2, 1})}));
  ASSERT_TRUE(copies.ok()) << copies.error().to_string();
  EXPECT_THAT(survival_lines(*copies),
              ElementsAre("survives the loss of any 1 of 3 nodes: yes; any 2: 3 of 3 sets lose "
                          "data, such as {0, 1}; any 3: 1 of 1 sets lose data, such as {0, 1}"));
  const Json json = survival_json(*copies);
  EXPECT_EQ(json["holders"].dump(), "[[0,1],[1,2],[0,2]]");
  EXPECT_EQ(json["losses"][0]["fatal"], 0);
  EXPECT_EQ(json["losses"][1]["fatal"], 3);
}

TEST(Copies, ANodeWhoseDiskFailsIsNamed) {
  const auto copies = copies_of(answer(2, {member(0, {0, 1}), failing(1, {0, 1})}));
  ASSERT_TRUE(copies.ok()) << copies.error().to_string();
  EXPECT_THAT(
      survival_lines(*copies),
      ElementsAre(
          "survives the loss of any 1 of 2 nodes: yes; any 2: 1 of 1 sets lose data, such as "
          "{0, 1}",
          "node 1: version 4 not local: write: Input/output error (what it keeps is counted)",
          "should the disk of node 1 not give back what it has: on one node only: its loss "
          "would lose the version"));
  EXPECT_EQ(survival_json(*copies)["troubles"].size(), 1u);
}

TEST(Copies, WhatWouldSurviveWithoutADiskThatFailsIsSaid) {
  Json members = Json::array({member(0, {0, 2}), failing(1, {1, 0}), member(2, {2, 1})});
  const auto copies = copies_of(answer(3, members));
  ASSERT_TRUE(copies.ok()) << copies.error().to_string();
  EXPECT_EQ(survival_lines(*copies).back(),
            "should the disk of node 1 not give back what it has: survives the loss of any 1 of 2 "
            "nodes: 2 of 2 sets lose data, such as {0}; any 2: 1 of 1 sets lose data, such as {0}");
  EXPECT_EQ(survival_json(*copies)["without_troubled"]["losses"][0]["fatal"], 2);
  EXPECT_EQ(survival_json(*copies)["losses"][0]["fatal"], 0);
  members[2] = failing(2, {2, 1});
  const auto two = copies_of(answer(3, members));
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(survival_lines(*two).back(),
            "should the disks of nodes 1, 2 not give back what they have: not whole on the nodes "
            "that are left: no node has the file of node 1");
  EXPECT_EQ(survival_json(*two)["without_troubled"]["gone"].dump(), "[1]");
}

// Others keep no copies for it, whatever words they say that in; or its disk is full.
TEST(Copies, NothingIsSaidOfADiskThatGivesWhatItHas) {
  for (const auto& [level, code, why] :
       {std::tuple{Level::protected_, Code::io, "copies are not local: 0 of 1"},
        {Level::local, Code::no_space, "write: No space left on device"}}) {
    const Json one = lacking(member(1, {0, 1}), level, code, why);
    const auto copies = copies_of(answer(2, {member(0, {0, 1}), one}));
    ASSERT_TRUE(copies.ok()) << copies.error().to_string();
    EXPECT_THAT(copies->troubled, IsEmpty()) << why;
    EXPECT_EQ(survival_lines(*copies).size(), 2u) << why;
    EXPECT_TRUE(survival_json(*copies)["without_troubled"].is_null()) << why;
  }
}

TEST(Copies, ParityIsCounted) {
  Json members = Json::array();
  for (const NodeId node : {0, 1, 2})
    members.push_back(member_with_parity(node, node, {0, 2, 1}, 1));
  const auto copies = copies_of(answer(3, members));
  ASSERT_TRUE(copies.ok()) << copies.error().to_string();
  EXPECT_THAT(survival_lines(*copies),
              ElementsAre("survives the loss of any 1 of 3 nodes: yes; any 2: 3 of 3 sets lose "
                          "data, such as {0, 1}; any 3: 1 of 1 sets lose data, such as {0, 1, 2}"));
  members.erase(2);
  members.push_back(silent(2));
  const auto less = copies_of(answer(3, members));
  ASSERT_TRUE(less.ok());
  EXPECT_THAT(survival_lines(*less),
              ElementsAre("survives the loss of any 1 of 2 nodes: 2 of 2 sets lose data, such as "
                          "{0}; any 2: 1 of 1 sets lose "
                          "data, such as {0, 1}",
                          "node 2 did not answer: what is there is not counted"));
}

// A node alone has no other agent to put parity together with.
TEST(Copies, ParityThatLeavesOneNodeNeedsASecond) {
  const std::string yes =
      "survives the loss of any 1 of 2 nodes: yes; any 2: 1 of 1 sets lose "
      "data, such as {0, 1}";
  Json members = Json::array({member_with_parity(0, 0, {0, 1}, 1),  //
                              member_with_parity(1, 1, {0, 1}, 1)});
  const auto two = copies_of(answer(2, members));
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  EXPECT_THAT(survival_lines(*two),
              ElementsAre(yes,
                          "with one node left a restart needs a second one, which may be "
                          "empty"));
  members[0]["files"] = members[1]["files"] = {0, 1};
  const auto rebuilt = copies_of(answer(2, members));
  ASSERT_TRUE(rebuilt.ok());
  EXPECT_THAT(survival_lines(*rebuilt), ElementsAre(yes)) << "each has all files";
  members = Json::array();
  for (const NodeId node : {0, 1, 2, 3})
    members.push_back(member_with_parity(node, node, {node / 2 * 2, node / 2 * 2 + 1}, 1));
  const auto four = copies_of(answer(4, members));
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(survival_lines(*four).size(), 1u) << "two are left at least";
}

TEST(Copies, ParityThatCannotBeIsRefused) {
  for (const Json& wrong :
       {member_with_parity(0, 1, {0, 2}, 1), member_with_parity(0, 0, {0, 3}, 1),
        member_with_parity(0, 0, {0, 1}, 2), member_with_parity(0, 0, {0, 1, 1}, 1)}) {
    const auto copies = copies_of(answer(3, Json::array({wrong})));
    ASSERT_FALSE(copies.ok());
    EXPECT_EQ(copies.error().code(), Code::protocol);
  }
}

TEST(Copies, WhoIsSilentIsSaidAndNotCounted) {
  const auto copies = copies_of(answer(3, {member(0, {0, 2}), silent(1), member(2, {2, 1})}, 1));
  ASSERT_TRUE(copies.ok());
  EXPECT_THAT(survival_lines(*copies),
              ElementsAre("survives the loss of any 1 of 2 nodes: 2 of 2 sets lose data, such as "
                          "{0}; any 2: 1 of 1 sets lose data, such as {0}",
                          "node 1 did not answer: what is there is not counted",
                          "1 more node was not asked: what is there is not counted"));
}

TEST(Copies, WhatIsGoneIsSaidFirst) {
  const auto copies = copies_of(answer(2, Json::array({member(0, {0})}), 0, "durable"));
  ASSERT_TRUE(copies.ok());
  EXPECT_THAT(survival_lines(*copies),
              ElementsAre("not whole on the nodes that answered: no node has the file of node 1",
                          "also in the durable directory: comes back after the loss of all nodes"));
}

TEST(Copies, OfOneNode) {
  const auto copies = copies_of(answer(1, Json::array({member(0, {0})}), 0, "local"));
  ASSERT_TRUE(copies.ok());
  EXPECT_THAT(survival_lines(*copies),
              ElementsAre("on this node only: its loss would lose the version"));
}

TEST(Copies, AnythingElseIsRefused) {
  for (const char* text :
       {"{}", "[]", "null",
        R"({"level":"local","nodes":4000000000,"members":[],"members_left_out":0})",
        R"({"level":"local","nodes":1,"members":[{"node":0,"state":"ok","files":[1]}],)"
        R"("members_left_out":0})",
        R"({"level":"local","nodes":1,"members":[{"node":4000000000,"state":"ok","files":[],)"
        R"("parity":null}],"members_left_out":0})",
        R"({"level":"local","nodes":1,"members":[{"node":0,"state":"ok","files":[],)"
        R"("parity":null,"lacks":"x"}],"members_left_out":0})",
        R"({"level":"local","nodes":1,"members":[{"node":0}],"members_left_out":0})"}) {
    const auto copies = copies_of(Json::parse(text));
    ASSERT_FALSE(copies.ok()) << text;
    EXPECT_EQ(copies.error().code(), Code::protocol);
  }
}

}  // namespace
}  // namespace backstay::bin
