// Reports and orders as messages, in as many parts as they need, and put together again
// (docs/protocol/cut.md, "Messages"). No I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cut/report.h"
#include "wire/cut_message.h"

namespace backstay::cut {

// Of each list of a report or an order.
inline constexpr std::size_t list_max = 131'072;

// Errors: too_large.
Result<std::vector<wire::CutReport>> as_messages(const Report& report);
Result<std::vector<wire::CutOrder>> as_messages(const Order& order);

// The parts that have come over one link. The whole one with its last part. Errors: too_large,
// invalid (lists that are not sorted, an unknown kind); what has come of it is forgotten.
class ReportParts {
 public:
  Result<std::optional<Report>> put(const wire::CutReport& part);

 private:
  Report whole_;
};
class OrderParts {
 public:
  Result<std::optional<Order>> put(const wire::CutOrder& part);

 private:
  Order whole_;
};

}  // namespace backstay::cut
