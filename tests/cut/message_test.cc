#include "cut/message.h"

#include <gtest/gtest.h>

namespace backstay::cut {
namespace {

Report large_report() {
  Report report{4, 2, 9, 8, 7, 6, 5, 1, 100, 99, 12, {}, {}};
  for (std::uint64_t i = 0; i < 3000; ++i) report.clocks.push_back({2 * i, i, i + 1});
  for (std::uint32_t i = 0; i < 1025; ++i) report.needs.push_back({i, 7, Need::What::taken, i});
  return report;
}

TEST(CutMessage, ALargeReportTravelsInParts) {
  const Report report = large_report();
  const auto messages = as_messages(report);
  ASSERT_TRUE(messages.ok());
  ASSERT_EQ(messages->size(), 3U);
  ReportParts parts;
  for (int times = 0; times < 2; ++times) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto whole = parts.put((*messages)[i]);
      ASSERT_TRUE(whole.ok());
      ASSERT_EQ(whole->has_value(), i == 2);
      if (whole->has_value()) {
        EXPECT_EQ(**whole, report);
      }
    }
  }
}

TEST(CutMessage, AnOrderComesBackWhole) {
  Order order{4, Order::What::save, 2, {}, {}, 12};
  for (std::uint64_t i = 0; i < 1025; ++i) order.targets.push_back({i, i * i});
  order.needs.push_back({1, any_rank, Need::What::message, 3});
  const auto messages = as_messages(order);
  ASSERT_TRUE(messages.ok());
  ASSERT_EQ(messages->size(), 2U);
  OrderParts parts;
  ASSERT_FALSE(parts.put((*messages)[0])->has_value());
  const auto whole = parts.put((*messages)[1]);
  ASSERT_TRUE(whole.ok() && whole->has_value());
  EXPECT_EQ(**whole, order);
}

TEST(CutMessage, WhatWasBegunAndNotEndedIsForgotten) {
  Report report = large_report();
  const auto first = as_messages(report);
  report.round = 3;
  report.clocks.resize(1);
  report.needs.clear();
  ReportParts parts;
  ASSERT_FALSE(parts.put(first->front())->has_value());
  const auto whole = parts.put(as_messages(report)->front());
  ASSERT_TRUE(whole.ok() && whole->has_value());
  EXPECT_EQ(**whole, report);
}

TEST(CutMessage, MoreThanTheLimitIsRefusedOnBothSides) {
  Report report;
  for (std::uint64_t i = 0; i <= list_max; ++i) report.clocks.push_back({i, 0, 0});
  EXPECT_EQ(as_messages(report).error().code(), Code::too_large);
  report.clocks.pop_back();
  auto messages = *as_messages(report);
  messages.back().more = true;
  messages.push_back({});
  messages.back().clocks.push_back({list_max, 0, 0});
  ReportParts parts;
  for (const wire::CutReport& message : messages) {
    const auto whole = parts.put(message);
    if (&message != &messages.back()) {
      ASSERT_TRUE(whole.ok());
    } else {
      EXPECT_EQ(whole.error().code(), Code::too_large);
    }
  }
}

TEST(CutMessage, WhatIsNotSortedOrUnknownIsRefused) {
  const auto code = [](const wire::CutReport& part) {
    const auto whole = ReportParts().put(part);
    return whole.ok() ? Code::ok : whole.error().code();
  };
  wire::CutReport part;
  part.clocks = {{2, 1, 1}, {1, 1, 1}};
  EXPECT_EQ(code(part), Code::invalid);
  part.clocks = {{1, 2, 1}};
  EXPECT_EQ(code(part), Code::invalid);
  part.clocks.clear();
  part.needs = {{1, 2, 2, 0}};
  EXPECT_EQ(code(part), Code::invalid);
  part.needs = {{2, 2, 1, 0}, {1, 2, 1, 0}};
  EXPECT_EQ(code(part), Code::invalid);
  wire::CutOrder order;
  order.what = 5;
  EXPECT_EQ(OrderParts().put(order).error().code(), Code::invalid);
}

}  // namespace
}  // namespace backstay::cut
