// How the drain's thread copies (docs/protocol/drain.md): a file of a node when it is its turn; and
// for the coordinator it takes the lock, clears up, and writes the record in the end. A job on one
// node takes the same steps: it is the coordinator, and has all turns.
//
// One part is copied at a time and one version is prepared at a time; both may be at once. What is
// dropped leaves no half-written file; whole ones stay for the agent that goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/disk/liveness_lock.h"
#include "agent/disk/store.h"
#include "agent/version/pooled_part.h"
#include "base/fd.h"
#include "store/version_copy.h"

namespace backstay::agent {

// --- commands -------------------------------------------------------------------------------
struct PrepareCopy {  // answered by CopyPrepared; the lock is held from then on
  std::uint64_t ticket = 0;
  format::CommitRecord record;  // job, version, run and nodes count; the sum where it is not 0
};
struct CopyPart {  // answered by PartCopied
  std::uint64_t ticket = 0;
  format::CommitRecord record;  // job, version, run, nodes and ranks count; of one node the sum
  NodeId node = 0;
  std::uint64_t bytes_per_s = 0;                  // 0: no limit
  std::shared_ptr<const PooledPart> pooled = {};  // read first; null: the disk alone has it
};
struct StopPart {};  // the part under way, if any, is answered by PartCopied with code again
// Writes the record of what was prepared, which ends with it; answered by VersionDurable or
// CopyFailed.
struct CommitCopy {
  format::CommitRecord record;
  std::vector<VersionNumber> expired = {};  // removed once it is there
};
struct EndCopy {};  // gives up what was prepared

// What the drain needs of the world. Called in its thread.
struct DrainWorld {
  std::string local_dir;
  // A tier in a directory that exists. Errors: io (it does not), permission.
  std::function<Result<std::unique_ptr<tier::Tier>>(const std::string& dir)> open_tier;
  // The same of the durable directory, where agents of other nodes may write the same names
  // (tier/dir.h: writer).
  std::function<Result<std::unique_ptr<tier::Tier>>(const std::string& dir)> open_durable;
  // The lock of the job in a directory. Errors: busy, permission, io.
  std::function<Result<store::HeldLock>(const std::string& dir)> lock;
  LivenessLock::Lock lock_live;
  StoreWorker::PostEvent post_event;
};

class DrainParts {
 public:
  // All must live longer.
  DrainParts(const std::string& job, const DrainWorld& world, LivenessLock& live,
             const Clock& clock)
      : job_(job), world_(world), live_(live), clock_(clock) {}

  void handle(const std::string& dir, const PrepareCopy& command);
  void handle(const std::string& dir, const CopyPart& command);
  void handle(const StopPart&);
  // `recorded` is called under the lock.
  void handle(const CommitCopy& command,
              const std::function<void(const format::CommitRecord&)>& recorded);
  void handle(const EndCopy&) { give_up_prepared(); }

  bool busy() const { return part_ != nullptr; }
  void step();
  std::uint64_t rests_until_ns() const { return part_->copy->rests_until_ns(); }

 private:
  struct Part {
    std::uint64_t ticket = 0;
    std::unique_ptr<tier::Tier> from;
    std::unique_ptr<tier::Tier> to;
    std::optional<store::VersionCopy> copy;
  };
  struct Prepared {
    format::CommitRecord record;
    std::unique_ptr<tier::Tier> to;
    store::HeldLock lock;
  };
  Result<std::optional<StoredVersion>> prepare(const std::string& dir, const PrepareCopy& command);
  void give_up_prepared();
  Status begin(const std::string& dir, const CopyPart& command);
  void answer(const Status& status);

  const std::string& job_;
  const DrainWorld& world_;
  LivenessLock& live_;
  const Clock& clock_;
  std::unique_ptr<Part> part_;
  std::optional<Prepared> prepared_;
};

}  // namespace backstay::agent
