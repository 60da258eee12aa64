// The drain of one job: copies versions from the node's disk to shared storage and reads them from
// there for restarts, in a thread of its own: the store and the drain never wait for each other.
//
// One version is copied at a time, each node's file in its turn (drain_parts.h; version_copy.h has
// the steps). The coordinator's drain holds the job's lock in the durable directory meanwhile and
// at no other time, so that tools may remove versions there; liveness_lock.h keeps other programs
// away. Under the lock also everything without a commit record is removed, and after a copy what
// retention does not keep. Reading for a restart goes before copying. A durable directory that is
// missing is an error and is never made: the file system may just not be mounted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agent/disk/drain_parts.h"
#include "agent/disk/store.h"
#include "base/alternative.h"
#include "base/fd.h"
#include "store/version_copy.h"

namespace backstay::agent {

// --- commands -------------------------------------------------------------------------------
struct OpenDurable {  // answered by Scanned; removes nothing
  std::string dir;
};
struct Reopen {};    // there is a version: a directory that could not be opened is tried once more
struct PauseDrain {  // the node's disk is needed for a new version: no piece is copied meanwhile
  bool on = false;
};
struct SetLive {  // liveness_lock.h; off until told
  bool on = false;
};
// A command of the store means the durable directory here.
class DrainCommand : public std::variant<Command, OpenDurable, Reopen, PauseDrain, SetLive,
                                         PrepareCopy, CopyPart, StopPart, CommitCopy, EndCopy> {
 public:
  template <AlternativeOf<variant> T>
  DrainCommand(T&& value)  // NOLINT(google-explicit-constructor): as a variant
      : variant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
  DrainCommand();
  DrainCommand(const DrainCommand& other);
  DrainCommand(DrainCommand&& other) noexcept;
  DrainCommand& operator=(const DrainCommand& other);
  DrainCommand& operator=(DrainCommand&& other) noexcept;
  ~DrainCommand();
};

// What the drain's thread does, without the thread: a test may play it step by step. One thread.
class DrainWorker {
 public:
  DrainWorker(std::string job, DrainWorld world, const Clock& clock);
  void handle(DrainCommand command);
  // There is something to carry on: step() is to be called.
  bool busy() const;
  // Carries it on by a piece; blocks for a request to a disk.
  void step();
  // While busy: nothing may be done before this time of the clock, as the rate is limited; else 0.
  std::uint64_t rests_until_ns() const;

  // For DiskThread. At its end what is under way is given up: a folder without a commit record
  // stays.
  std::uint64_t wakes_ns() const { return busy() ? rests_until_ns() : no_deadline; }
  void carry_on(bool) {
    if (busy()) step();
  }
  void finish() {}

 private:
  void handle(Command& command);
  void handle(OpenDurable& command);
  void handle(Reopen&);
  void handle(PauseDrain& command) { stands_still_ = command.on; }
  void handle(SetLive& command) { live_.set(command.on); }
  void handle(PrepareCopy& command) { parts_.handle(dir_, command); }
  void handle(CopyPart& command) { parts_.handle(dir_, command); }
  void handle(StopPart& command) { parts_.handle(command); }
  void handle(CommitCopy& command);
  void handle(EndCopy& command) { parts_.handle(command); }
  void tell(const format::CommitRecord& record, const std::vector<VersionNumber>& expired);
  void open_store();
  bool reads() const { return store_ && store_->busy(); }

  const std::string job_;
  const DrainWorld world_;
  const Clock& clock_;
  std::string dir_;
  std::unique_ptr<StoreWorker> store_;  // of the durable directory
  LivenessLock live_;
  DrainParts parts_;
  bool stands_still_ = false;
};

}  // namespace backstay::agent
