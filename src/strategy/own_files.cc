#include "strategy/own_files.h"

#include <utility>

#include "base/attempt.h"
#include "base/clock.h"
#include "base/failpoint.h"

namespace backstay::strategy {

OwnFiles::OwnFiles(const Ranks& ranks, int each, bool behind)
    : ranks_(ranks),
      files_(static_cast<std::uint32_t>(ceil_div(ranks.group.ranks(), each))),
      behind_(behind),
      group_(ranks, each) {}

Status OwnFiles::write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) {
  const Status ready = ranks_.group.agree(attempt([&] { return prepare(version); }));
  if (!ready.ok()) {
    if (thread_ != nullptr) thread_->end(ready);
    handed_over_ = ready;
    return settle(report);
  }
  handed_over_ = attempt([&] {
    return group_.writes() ? take_in(version, snapshot, report) : group_.send(snapshot, report);
  });
  if (group_.writes()) thread_->end(handed_over_);
  return behind_ ? Status() : settle(report);
}

// The steps that may fail on one rank alone come before workers and writers count on each other.
Status OwnFiles::prepare(const NewVersion& version) {
  if (!group_.writes()) return group_.prepare();
  if (thread_ == nullptr) thread_ = std::make_unique<WriterThread>(ranks_);
  thread_->begin(info_of(ranks_, version, group_.number(), files_));
  return {};
}

Status OwnFiles::take_in(const NewVersion& version, client::Snapshot& snapshot,
                         RankReport& report) {
  const std::uint64_t began = system_clock().monotonic_ns();
  BACKSTAY_ASSIGN(const auto shapes, group_.take_shapes(snapshot));
  store::PartEnd end{version.number, version.captured_ns, {}};
  for (const auto& shape : shapes) {
    std::uint64_t bytes = 0;
    for (const std::uint64_t field : shape) bytes += field;
    const auto rank = group_.first() + static_cast<int>(end.object_bytes.size());
    end.object_bytes.emplace_back(static_cast<Rank>(rank), bytes);
  }
  thread_->expect(std::move(end));
  Status status;
  for (std::size_t field = 0; field < most_fields(shapes); ++field) {
    keep(status, group_.take_field(snapshot, shapes, field,
                                   [&](const Chunk& chunk, const Fill& fill) -> Status {
                                     return thread_->take(chunk, fill);
                                   }));
  }
  failpoint("strategy.taken");
  report.hand_over_ns = system_clock().monotonic_ns() - began;
  return status;
}

Status OwnFiles::settle(RankReport& report) {
  Status mine = handed_over_;
  if (thread_ != nullptr) keep(mine, thread_->wait(report));
  return ranks_.group.agree(mine);
}

Status OwnFiles::so_far() {
  return thread_ == nullptr || !handed_over_.ok() ? handed_over_ : thread_->so_far();
}

}  // namespace backstay::strategy
