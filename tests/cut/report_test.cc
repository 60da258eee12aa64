#include "cut/report.h"

#include <gtest/gtest.h>

namespace backstay::cut {
namespace {

Report of(CutNumber cut, std::uint32_t round, std::vector<Clock> clocks) {
  Report report;
  report.cut = cut;
  report.round = round;
  report.ranks = 1;
  report.clocks = std::move(clocks);
  return report;
}

TEST(CutReport, JoinsClocksOfOneCommunicator) {
  Report all = of(1, 3, {{0, 4, 4}, {7, 1, 1}});
  join(all, of(1, 2, {{0, 6, 6}, {9, 5, 5}}));
  EXPECT_EQ(all.ranks, 2U);
  EXPECT_EQ(all.round, 2U) << "the round that all have answered";
  EXPECT_EQ(all.clocks, (std::vector<Clock>{{0, 4, 6}, {7, 1, 1}, {9, 5, 5}}));
  EXPECT_FALSE(all.clocks[0].is_settled());
  EXPECT_TRUE(all.clocks[2].is_settled());
}

// However reports are grouped on their way, the same arrives.
TEST(CutReport, JoiningDoesNotDependOnTheTree) {
  std::vector<Report> reports;
  for (std::uint64_t rank = 0; rank < 6; ++rank) {
    Report report = of(1, 1, {{0, rank, rank}, {rank % 2 + 1, 3, 3}});
    report.sent = 10 * rank;
    report.taken_in = rank;
    report.needs = {{static_cast<RankNumber>(rank), 0, Need::What::message, rank}};
    reports.push_back(report);
  }
  Report in_a_row = reports[0];
  for (std::size_t i = 1; i < 6; ++i) join(in_a_row, reports[i]);
  Report left = reports[5], right = reports[3];
  for (const std::size_t i : {1U, 4U}) join(left, reports[i]);
  for (const std::size_t i : {0U, 2U}) join(right, reports[i]);
  join(left, right);
  EXPECT_EQ(left, in_a_row);
}

TEST(CutReport, ReportsOfAnEarlierCutMakeRoomAndStayAway) {
  Reports reports;
  reports.put(0, of(1, 1, {}));
  reports.put(1, of(1, 1, {}));
  EXPECT_EQ(reports.joined().ranks, 2U);
  reports.put(1, of(2, 1, {}));
  EXPECT_EQ(reports.joined().ranks, 1U);
  reports.put(0, of(1, 9, {}));
  EXPECT_EQ(reports.joined().ranks, 1U) << "late";
  EXPECT_EQ(reports.joined().cut, 2U);
}

}  // namespace
}  // namespace backstay::cut
