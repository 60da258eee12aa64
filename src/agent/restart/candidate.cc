#include "agent/restart/candidate.h"

#include "agent/group/remote_files.h"

namespace backstay::agent {

namespace {

class Newest {
 public:
  explicit Newest(const wire::Candidates& asked) : below_(asked.below, asked.below_run) {}

  void consider(VersionOfRun version, std::uint32_t ranks) {
    if (below_.first != 0 && version >= below_) return;
    if (ranks_ != 0 && version <= best_) return;
    best_ = version;
    ranks_ = ranks;
  }
  void consider(const StoredVersion& stored) {
    consider({stored.version, stored.record.run}, stored.record.ranks);
  }
  // Of which run it was is not known: where another place has a version of that number, that one
  // counts.
  void consider_damaged(const StoredVersion& stored) {
    if (below_.first == 0 || stored.version < below_.first) damaged_ = &stored;
  }
  bool any() const { return ranks_ != 0 || damaged_ != nullptr; }
  wire::Candidate answer() const {
    if (damaged_ == nullptr || damaged_->version <= best_.first) {
      return {best_.first, best_.second, Code::ok, "", ranks_};
    }
    const Code code = damaged_->unreadable ? damaged_->unreadable->code() : Code::corrupt;
    return {damaged_->version, 0, code, damaged_->damage, 0};
  }

 private:
  const VersionOfRun below_;
  VersionOfRun best_;
  std::uint32_t ranks_ = 0;
  const StoredVersion* damaged_ = nullptr;
};

}  // namespace

wire::Candidate newest_candidate(const JobState& state, const wire::Candidates& asked) {
  Newest newest(asked);
  for (const auto& [number, held] : state.memory) {
    if (state.whole_in_memory(number)) newest.consider({number, held.info.run}, held.info.ranks);
  }
  for (const auto& [number, row] : state.versions.rows()) {
    if (row.good()) newest.consider(*row.disk);
    if (row.durable()) newest.consider(*row.shared);
    if (row.shared && !row.shared->damage.empty()) newest.consider_damaged(*row.shared);
  }
  if (state.around != nullptr) {
    for (const auto& [file, held] : state.around->directory().held().all()) {
      if (held.record) newest.consider({file.version, file.run}, held.ranks_of_run);
    }
  }
  if (newest.any()) return newest.answer();
  // It is unknown what is there: not the time to begin again.
  if (const auto& why = state.versions.why_shared_unreadable()) {
    return {0, 0, why->code(), why->message(), 0};
  }
  return {0, 0, Code::none, "no version of this job exists yet", 0};
}

}  // namespace backstay::agent
