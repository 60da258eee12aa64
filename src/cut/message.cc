#include "cut/message.h"

#include <algorithm>
#include <string>
#include <utility>

#include "wire/limits.h"

namespace backstay::cut {

namespace {

constexpr std::size_t part_max = wire::list_entries_max;

Error too_large() {
  return Error(Code::too_large, "a cut of more than " + std::to_string(list_max) +
                                    " communicators, or of as many waiting ranks, is not agreed "
                                    "upon");
}

template <typename Same>
Same as_wire(const Same& one) {
  return one;
}
wire::CutNeed as_wire(const Need& one) {
  return {one.waiting, one.peer, static_cast<std::uint32_t>(one.what), one.count};
}

// The entries that the part `part` has of a list.
template <typename Wire, typename Entry>
std::vector<Wire> slice(const std::vector<Entry>& list, std::size_t part) {
  std::vector<Wire> some;
  const std::size_t end = std::min(list.size(), (part + 1) * part_max);
  for (std::size_t at = part * part_max; at < end; ++at) some.push_back(as_wire(list[at]));
  return some;
}

std::size_t parts_of(std::size_t one, std::size_t other) {
  return std::max<std::size_t>(1, (std::max(one, other) + part_max - 1) / part_max);
}

bool append_needs(std::vector<Need>& needs, const std::vector<wire::CutNeed>& more) {
  for (const wire::CutNeed& one : more) {
    if (one.what > static_cast<std::uint32_t>(Need::What::taken)) return false;
    const Need need{one.waiting, one.peer, static_cast<Need::What>(one.what), one.count};
    if (!needs.empty() && need < needs.back()) return false;
    needs.push_back(need);
  }
  return true;
}

Error malformed() {
  return Error(Code::invalid,
               "a report or order of a cut is malformed: its lists are not sorted, "
               "or it is of an unknown kind");
}

// What has come of another cut or round was not ended: it is forgotten.
template <typename Whole, typename Part>
void begin_part(Whole& whole, const Part& part) {
  if (whole.cut == part.cut && whole.round == part.round) return;
  whole = Whole{};
  whole.cut = part.cut;
  whole.round = part.round;
}

}  // namespace

Result<std::vector<wire::CutReport>> as_messages(const Report& report) {
  if (report.clocks.size() > list_max || report.needs.size() > list_max) return too_large();
  const std::size_t parts = parts_of(report.clocks.size(), report.needs.size());
  std::vector<wire::CutReport> all;
  for (std::size_t part = 0; part < parts; ++part) {
    all.push_back({report.cut, report.round, report.ranks, report.reached, report.standing,
                   report.closed, report.saved, report.ended, report.sent, report.taken_in,
                   report.newest, slice<wire::CutClock>(report.clocks, part),
                   slice<wire::CutNeed>(report.needs, part), part + 1 < parts});
  }
  return all;
}

Result<std::vector<wire::CutOrder>> as_messages(const Order& order) {
  if (order.targets.size() > list_max || order.needs.size() > list_max) return too_large();
  const std::size_t parts = parts_of(order.targets.size(), order.needs.size());
  std::vector<wire::CutOrder> all;
  for (std::size_t part = 0; part < parts; ++part) {
    all.push_back({order.cut, static_cast<std::uint32_t>(order.what), order.round, order.version,
                   slice<wire::CutTarget>(order.targets, part),
                   slice<wire::CutNeed>(order.needs, part), part + 1 < parts});
  }
  return all;
}

Result<std::optional<Report>> ReportParts::put(const wire::CutReport& part) {
  begin_part(whole_, part);
  std::vector<Clock>& clocks = whole_.clocks;
  bool good = append_needs(whole_.needs, part.needs);
  for (const wire::CutClock& one : part.clocks) {
    good = good && (clocks.empty() || clocks.back().communicator < one.communicator) &&
           one.least <= one.most;
    clocks.push_back(one);
  }
  const bool fits = clocks.size() <= list_max && whole_.needs.size() <= list_max;
  if (!good || !fits) {
    whole_ = {};
    return good ? too_large() : malformed();
  }
  if (part.more) return std::optional<Report>();
  whole_ = {part.cut,
            part.round,
            part.ranks,
            part.reached,
            part.standing,
            part.closed,
            part.saved,
            part.ended,
            part.sent,
            part.taken_in,
            part.newest,
            std::move(whole_.clocks),
            std::move(whole_.needs)};
  return std::optional<Report>(std::exchange(whole_, {}));
}

Result<std::optional<Order>> OrderParts::put(const wire::CutOrder& part) {
  begin_part(whole_, part);
  std::vector<Order::Target>& targets = whole_.targets;
  bool good = append_needs(whole_.needs, part.needs) &&
              part.what <= static_cast<std::uint32_t>(Order::What::give_up);
  for (const wire::CutTarget& one : part.targets) {
    good = good && (targets.empty() || targets.back().communicator < one.communicator);
    targets.push_back(one);
  }
  const bool fits = targets.size() <= list_max && whole_.needs.size() <= list_max;
  if (!good || !fits) {
    whole_ = {};
    return good ? too_large() : malformed();
  }
  if (part.more) return std::optional<Order>();
  whole_.what = static_cast<Order::What>(part.what);
  whole_.version = part.version;
  return std::optional<Order>(std::exchange(whole_, {}));
}

}  // namespace backstay::cut
