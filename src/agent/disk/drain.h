// The drain of one job: copies versions from the node's disk to shared storage and reads them from
// there for restarts, in a thread of its own: the store and the drain never wait for each other.
//
// One version is copied at a time (version_copy.h has the steps). The job's lock in the durable
// directory is held meanwhile and at no other time, so that tools may remove versions there;
// liveness_lock.h keeps other programs away. Under the lock also everything without a commit record
// is removed, and after a copy what retention does not keep. Of a job on several nodes each copies
// its own files in turns (drain_parts.h). Reading for a restart goes before copying. A durable
// directory that is missing is an error and is never made: the file system may just not be mounted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "agent/disk/drain_parts.h"
#include "agent/disk/mailbox.h"
#include "agent/disk/store.h"
#include "agent/disk/version_copy.h"
#include "base/alternative.h"
#include "base/fd.h"

namespace backstay::agent {

// --- commands -------------------------------------------------------------------------------
struct OpenDurable {  // answered by Scanned; removes nothing
  std::string dir;
};
struct CopyVersion {  // answered by VersionDurable or CopyFailed
  format::CommitRecord record;
  std::uint64_t bytes_per_s = 0;  // 0: no limit
  // Of those that are there, removed once it is.
  std::vector<VersionNumber> expired = {};
};
struct Reopen {};    // there is a version: a directory that could not be opened is tried once more
struct PauseDrain {  // the node's disk is needed for a new version: no piece is copied meanwhile
  bool on = false;
};
struct SetLive {  // liveness_lock.h; off until told
  bool on = false;
};
// A command of the store means the durable directory here.
class DrainCommand
    : public std::variant<Command, OpenDurable, Reopen, CopyVersion, PauseDrain, SetLive,
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

 private:
  struct Copy {
    CopyVersion what;
    HeldLock lock;
    std::unique_ptr<tier::Tier> from;
    std::unique_ptr<tier::Tier> to;
    std::optional<VersionCopy> version;  // none: it was there already
  };
  void handle(Command& command);
  void handle(OpenDurable& command);
  void handle(Reopen&);
  void handle(CopyVersion& command);
  void handle(PauseDrain& command) { stands_still_ = command.on; }
  void handle(SetLive& command) { live_.set(command.on); }
  void handle(PrepareCopy& command) { parts_.handle(dir_, command); }
  void handle(CopyPart& command) { parts_.handle(dir_, command); }
  void handle(StopPart& command) { parts_.handle(command); }
  void handle(CommitCopy& command);
  void handle(EndCopy& command) { parts_.handle(command); }
  Status begin(const CopyVersion& command);
  void succeed(const format::CommitRecord& record);
  void tell(const format::CommitRecord& record, const std::vector<VersionNumber>& expired);
  void open_store();
  void give_up(const Error& error);
  bool reads() const { return store_ && store_->busy(); }

  const std::string job_;
  const DrainWorld world_;
  const Clock& clock_;
  std::string dir_;
  std::unique_ptr<StoreWorker> store_;  // of the durable directory
  std::optional<Copy> copy_;
  LivenessLock live_;
  DrainParts parts_;
  bool stands_still_ = false;
};

class Drain {
 public:
  Drain(std::string job, DrainWorld world);
  // Gives up what is under way: a folder without commit record stays.
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  void post(DrainCommand command) { commands_.put(std::move(command)); }

 private:
  void run(DrainWorker& worker);
  Mailbox<std::variant<DrainCommand, std::monostate>> commands_;  // monostate: end
  std::thread thread_;
};

}  // namespace backstay::agent
