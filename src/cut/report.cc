#include "cut/report.h"

#include <algorithm>
#include <iterator>

namespace backstay::cut {

namespace {

void join(Clock& all, const Clock& other) {
  all.least = std::min(all.least, other.least);
  all.most = std::max(all.most, other.most);
}

}  // namespace

void join(Report& all, const Report& other) {
  all.round = std::min(all.round, other.round);
  all.ranks += other.ranks;
  all.reached += other.reached;
  all.standing += other.standing;
  all.closed += other.closed;
  all.saved += other.saved;
  all.ended += other.ended;
  all.sent += other.sent;
  all.taken_in += other.taken_in;
  all.newest = std::max(all.newest, other.newest);
  std::vector<Clock> clocks;
  clocks.reserve(all.clocks.size() + other.clocks.size());
  std::merge(all.clocks.begin(), all.clocks.end(), other.clocks.begin(), other.clocks.end(),
             std::back_inserter(clocks),
             [](const Clock& a, const Clock& b) { return a.communicator < b.communicator; });
  all.clocks.clear();
  for (const Clock& clock : clocks) {
    if (!all.clocks.empty() && all.clocks.back().communicator == clock.communicator) {
      join(all.clocks.back(), clock);
    } else {
      all.clocks.push_back(clock);
    }
  }
  all.needs.insert(all.needs.end(), other.needs.begin(), other.needs.end());
  std::sort(all.needs.begin(), all.needs.end());
}

void Reports::put(std::uint32_t child, const Report& report) {
  if (report.cut < cut_) return;
  if (report.cut > cut_) last_.clear();
  cut_ = report.cut;
  last_[child] = report;
}

Report Reports::joined() const {
  Report all;
  bool first = true;
  for (const auto& [child, report] : last_) {
    if (first) {
      all = report;
    } else {
      join(all, report);
    }
    first = false;
  }
  return all;
}

}  // namespace backstay::cut
