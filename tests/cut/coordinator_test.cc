#include "cut/coordinator.h"

#include <gtest/gtest.h>

namespace backstay::cut {
namespace {

Report all(std::uint32_t round, std::uint64_t least, std::uint64_t most) {
  Report report;
  report.cut = 1;
  report.round = round;
  report.ranks = 2;
  report.reached = least == most ? 2 : 1;
  report.clocks = {{0, least, most}};
  return report;
}

std::vector<Order> orders(Coordinator& coordinator) {
  std::vector<Order> found;
  for (const CoordinatorOutput& output : coordinator.take()) {
    if (const auto* order = std::get_if<Order>(&output)) found.push_back(*order);
  }
  return found;
}

TEST(CutCoordinator, LeadsRanksToTheGreatestClock) {
  Coordinator coordinator(2);
  coordinator.request();
  coordinator.request();
  ASSERT_EQ(orders(coordinator).size(), 1U) << "one cut serves both requests";
  coordinator.receive(all(1, 3, 4));
  const auto run_on = orders(coordinator);
  ASSERT_EQ(run_on.size(), 1U);
  EXPECT_EQ(run_on[0].round, 2U);
  EXPECT_EQ(run_on[0].targets, (std::vector<Order::Target>{{0, 4}}));
  coordinator.receive(all(2, 3, 4));
  coordinator.receive(all(1, 4, 4));
  EXPECT_TRUE(orders(coordinator).empty()) << "nothing new; then: an answer to an older round";
  coordinator.receive(all(2, 4, 4));
  EXPECT_EQ(orders(coordinator)[0].what, Order::What::stop);
}

TEST(CutCoordinator, SavesWhenNoMessageIsUnderWay) {
  Coordinator coordinator(2);
  coordinator.request();
  coordinator.receive(all(1, 4, 4));
  coordinator.take();
  Report report = all(1, 4, 4);
  report.standing = 2;
  report.sent = 9;
  report.taken_in = 8;
  coordinator.receive(report);
  EXPECT_TRUE(orders(coordinator).empty());
  report.taken_in = 9;
  coordinator.receive(report);
  EXPECT_EQ(orders(coordinator)[0].what, Order::What::save);
  report.closed = 2;
  coordinator.receive(report);
  EXPECT_EQ(orders(coordinator)[0].what, Order::What::go_on);
  report.saved = 2;
  coordinator.receive(report);
  const auto out = coordinator.take();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(std::get<Ended>(out[0]).saved);
  EXPECT_TRUE(coordinator.is_idle());
}

TEST(CutCoordinator, GivesUpWhereARankHasEnded) {
  Coordinator coordinator(2);
  coordinator.request();
  coordinator.take();
  Report report = all(1, 4, 4);
  report.ended = 1;
  coordinator.receive(report);
  const auto out = coordinator.take();
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(std::get<Order>(out[0]).what, Order::What::give_up);
  EXPECT_EQ(std::get<Ended>(out[1]).why, "a rank has ended");
  coordinator.request();
  EXPECT_EQ(orders(coordinator)[0].cut, 2U);
}

}  // namespace
}  // namespace backstay::cut
