#include "meet/meeting.h"

#include <gmock/gmock.h>

namespace backstay::meet {
namespace {

using ::testing::HasSubstr;

// The message to this member; the first one if it gets several.
const Message* sent_to(const Orders& orders, MemberId member) {
  for (const Order& order : orders) {
    const auto* one = std::get_if<Send>(&order);
    if (one != nullptr && one->to == member) return &one->message;
  }
  return nullptr;
}

template <typename T>
T told(const Orders& orders, MemberId member) {
  const Message* message = sent_to(orders, member);
  const T* one = message == nullptr ? nullptr : std::get_if<T>(message);
  EXPECT_NE(one, nullptr);
  return one == nullptr ? T{} : *one;
}

bool ends(const Orders& orders, MemberId member) {
  for (const Order& order : orders) {
    const auto* one = std::get_if<End>(&order);
    if (one != nullptr && one->member == member) return true;
  }
  return false;
}

// Members 10, 11, ... are ranks 0, 1, ...
Orders gather(Meeting& meeting, const std::vector<std::string>& hosts) {
  Orders orders;
  const auto ranks = static_cast<std::uint32_t>(hosts.size());
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    orders = meeting.on(10 + rank, Join{rank, ranks, hosts[rank]});
  return orders;
}

TEST(Meeting, NodesAreInTheOrderOfTheirFirstRanks) {
  Meeting meeting;
  const Orders orders = gather(meeting, {"b", "a", "b", "c", "a"});
  EXPECT_EQ(told<Placed>(orders, 10), (Placed{0, 3, 0, 2}));
  EXPECT_EQ(told<Placed>(orders, 11), (Placed{1, 3, 0, 2}));
  EXPECT_EQ(told<Placed>(orders, 12), (Placed{0, 3, 1, 2}));
  EXPECT_EQ(told<Placed>(orders, 13), (Placed{2, 3, 0, 1}));
  EXPECT_EQ(told<Placed>(orders, 14), (Placed{1, 3, 1, 2}));
}

TEST(Meeting, TheLeastGoesToAllAndDataToAllOthers) {
  Meeting meeting;
  gather(meeting, {"a", "a", "a"});
  EXPECT_TRUE(meeting.on(10, Value{1, 5}).empty());
  EXPECT_TRUE(meeting.on(12, Value{1, -7}).empty());
  const Orders orders = meeting.on(11, Value{1, 9});
  for (const MemberId member : {10, 11, 12}) EXPECT_EQ(told<Value>(orders, member), (Value{1, -7}));
  const Data data = data_of(2, Buffer(5));
  const Orders sent = meeting.on(11, data);
  EXPECT_EQ(told<Data>(sent, 10), data);
  EXPECT_EQ(told<Data>(sent, 12), data);
  EXPECT_EQ(sent.size(), 2U);
}

TEST(Meeting, WhoDoesNotFitIsRefusedAndTheOthersWaitOn) {
  Meeting meeting;
  meeting.on(1, Join{0, 2, "a"});
  for (const Join& wrong : {Join{2, 2, "b"}, Join{0, 2, "b"}, Join{1, 3, "b"}, Join{0, 0, "b"}}) {
    const Orders orders = meeting.on(5, wrong);
    EXPECT_EQ(told<Over>(orders, 5).code, Code::invalid);
    EXPECT_TRUE(ends(orders, 5));
    EXPECT_EQ(sent_to(orders, 1), nullptr);
  }
  EXPECT_TRUE(ends(meeting.on(6, Value{1, 1}), 6));
  EXPECT_TRUE(meeting.gone(5).empty());
  EXPECT_EQ(told<Placed>(meeting.on(2, Join{1, 2, "a"}), 1), (Placed{0, 1, 0, 2}));
  EXPECT_TRUE(ends(meeting.on(7, Join{1, 2, "a"}), 7)) << "all have come";
  EXPECT_FALSE(meeting.loss());
}

TEST(Meeting, ARankThatVanishesEndsTheWaitsOfAllOthers) {
  Meeting meeting;
  gather(meeting, {"a", "b", "c"});
  meeting.on(10, Value{1, 5});
  const Orders orders = meeting.gone(11);
  for (const MemberId member : {10, 12}) {
    EXPECT_EQ(told<Over>(orders, member).code, Code::rank_lost);
    EXPECT_THAT(told<Over>(orders, member).message, HasSubstr("rank 1 on b is gone"));
  }
  EXPECT_EQ(meeting.loss()->text(), "rank 1 on b is gone");
  EXPECT_TRUE(meeting.on(12, Value{1, 5}).empty()) << "it has been told";
  EXPECT_TRUE(meeting.gone(10).empty());
  EXPECT_THAT(told<Over>(meeting.on(20, Join{1, 3, "b"}), 20).message, HasSubstr("rank 1 on b"));
  EXPECT_EQ(meeting.loss()->text(), "rank 1 on b is gone");
}

TEST(Meeting, LeavingIsNoLossUnlessItFailedOrIsWaitedFor) {
  for (const std::uint32_t code : {0U, 139U}) {
    Meeting meeting;
    gather(meeting, {"a", "a"});
    const Orders orders = meeting.on(10, Leave{code});
    EXPECT_TRUE(meeting.gone(10).empty());
    EXPECT_EQ(meeting.loss().has_value(), code != 0);
    if (code != 0) {
      EXPECT_THAT(told<Over>(orders, 11).message, HasSubstr("exit code 139"));
    } else {
      EXPECT_EQ(told<Over>(meeting.on(11, Value{1, 1}), 11).code, Code::rank_lost);
    }
  }
  Meeting waits;
  gather(waits, {"a", "a"});
  waits.on(11, Value{1, 1});
  EXPECT_THAT(told<Over>(waits.on(10, Leave{0}), 11).message, HasSubstr("rank 0"));
}

TEST(Meeting, ThoseWhoDoNotComeAreNamed) {
  Meeting meeting;
  EXPECT_FALSE(meeting.gathers());
  meeting.on(1, Join{0, 4, "a"});
  meeting.on(2, Join{2, 4, "a"});
  EXPECT_TRUE(meeting.gathers());
  const Orders orders = meeting.patience_is_over();
  EXPECT_THAT(told<Over>(orders, 1).message, HasSubstr("2 of 4 ranks have not come: 1, 3"));
  EXPECT_THAT(told<Over>(orders, 2).message, HasSubstr("1, 3"));
  EXPECT_FALSE(meeting.gathers());
}

TEST(Meeting, RanksThatCallInAnotherOrderAreTold) {
  Meeting meeting;
  gather(meeting, {"a", "a"});
  meeting.on(10, Value{1, 5});
  EXPECT_THAT(told<Over>(meeting.on(11, Value{2, 5}), 10).message, HasSubstr("rank 1"));
}

}  // namespace
}  // namespace backstay::meet
