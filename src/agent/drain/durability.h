// Which versions become durable, and when: gives the drain its work and keeps what is known of the
// durable directory (VersionRow::shared). No I/O. With several nodes drain_coordinator.h says which
// of them copies what.
//
// A version on the disk is due when it is newer than the newest durable one by `every` at least, or
// when somebody waits for its level durable. Of several that are due the newest is copied; the
// others are left out unless somebody waits. A copy that fails is not tried again: the next version
// is. What is copied is not removed by retention meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/disk/store.h"
#include "agent/drain/drain_coordinator.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class Durability {
 public:
  // `wanted(version)`: somebody waits for its level durable.
  Durability(JobState& state, std::function<bool(VersionNumber)> wanted)
      : state_(state), wanted_(std::move(wanted)) {}

  // A run begins with these settings: the directory is looked at anew.
  void open(DurableSettings settings);
  // The answer is not there yet: nobody knows which versions there are.
  bool opening() const { return opening_; }

  // Begins the next copy, if one is due and none is under way.
  void consider();
  // The version that is being copied; 0: none.
  VersionNumber copying() const { return around_ ? around_->copying() : copied_.version(); }
  // The node's disk is needed for a new version.
  void stand_still(bool on);
  // The program lives, and no node of its run is lost.
  void set_live(bool on);

  // Events of the drain; those of restarts are not its.
  void on(const Event& event);
  // Of open(), or of a restart that looks again (JobState::durable_looks). False: of a run before,
  // it says nothing.
  bool on(const Scanned& event);
  void on(const VersionDurable& event);
  void on(const CopyFailed& event);
  void on(const Removed& event);

  // The run's other agents are known; `held` is what is on this node's disk, known from listed()
  // on. Both must live until alone(): another run begins.
  void with(Peers& peers, const HeldFiles& held);
  void alone() { around_.reset(); }
  DrainCoordinator* around() { return around_ ? &*around_ : nullptr; }

 private:
  VersionNumber next() const;
  void durable(const StoredVersion& stored);
  void failed(const CopyFailed& event);
  void gone(VersionNumber version);
  void end_of_copy(VersionNumber version);

  JobState& state_;
  std::function<bool(VersionNumber)> wanted_;
  bool opening_ = false;
  std::uint32_t stale_looks_ = 0;  // asked for by restarts of a run before, and not answered
  bool stands_still_ = false;
  bool live_ = false;
  VersionPin copied_;  // the version that is being copied, in a run of one node
  std::optional<DrainCoordinator> around_;
};

}  // namespace backstay::agent
