// Which versions become durable, and when: keeps what is known of the durable directory
// (VersionRow::shared), and has the drain coordinator copy what is due (drain_coordinator.h says
// which node copies what). No I/O.
//
// A version on the disk is due when it is newer than the newest durable one by `every` at least, or
// when a rank or tool waits for its level durable. Of several that are due the newest is copied;
// the others are left out unless they are waited for. A copy that fails is not tried again: the
// next version is. What is copied is not removed by retention meanwhile.
#pragma once

#include <optional>
#include <string>

#include "agent/disk/store.h"
#include "agent/drain/drain_coordinator.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class Durability final : private DrainEvents {
 public:
  Durability(JobState& state, const Levels& levels) : state_(state), levels_(levels) {}

  // A run begins with these settings: the directory is listed again. What an earlier run of
  // several nodes had under way ends. Of a run of one node it goes on in the next run of one node,
  // as a large copy may take longer than a run.
  void open(DurableSettings settings, std::uint32_t nodes);
  // The answer is not there yet: the versions in the directory are unknown.
  bool opening() const { return opening_; }

  // Begins the next copy, if one is due and none is under way.
  void consider();
  // The version that is being copied; 0: none.
  VersionNumber copying() const { return coordinator_ ? coordinator_->copying() : 0; }
  // The node's disk is needed for a new version.
  void stand_still(bool on);
  // The program lives, or has captured files that are not at home; and no node of its run is lost.
  void set_live(bool on);

  // Events of the drain; those of restarts are not its.
  void on(const Event& event);
  // Of open(), or of a restart that looks again (JobState::durable_looks). False: of a run before,
  // it says nothing.
  bool on(const Scanned& event);

  // The run's other agents are known; `held` is what is on this node's disk, known from listed()
  // on. Both must live until open(): another run begins.
  void with(Peers& peers, const HeldFiles& held);
  // Null in a run of several nodes whose other agents are not known.
  DrainCoordinator* coordinator() { return coordinator_ ? &*coordinator_ : nullptr; }

 private:
  void begin(Peers* peers, const HeldFiles* held);
  void damaged(VersionNumber version, const std::string& why);
  // DrainEvents
  void durable(const StoredVersion& stored) override;
  void failed(const CopyFailed& event) override;
  void gone(VersionNumber version) override;

  JobState& state_;
  const Levels& levels_;
  bool opening_ = false;
  std::uint32_t stale_looks_ = 0;  // asked for by restarts of a run before, and not answered
  bool stands_still_ = false;
  bool live_ = false;
  bool alone_ = false;  // the coordinator is that of a run of one node
  std::optional<DrainCoordinator> coordinator_;
};

}  // namespace backstay::agent
