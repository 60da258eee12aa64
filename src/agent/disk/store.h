// The store: everything that blocks on one job's local tier, in one thread.
//
// The main loop posts commands and never waits; the store answers with events, in order of
// completion. It writes segments (several requests in flight), commits and removes versions as the
// main loop orders, and reads chunks for restarts. It keeps no list of versions: the table of the
// main loop is the one (agent/version/version_table.h).
//
// Commit protocol of level local (docs/format/manifest.md; each step is a failpoint):
//   commit.1  every slot of the segment is written
//   commit.2  the segment is sealed: content and size on the device
//   commit.3  the manifest is published (written, synced, renamed, folder synced): VersionSealed
// Now every node of the run must get as far; the tree of agents counts that (docs/protocol/tree.md)
// and has the record written:
//   commit.4  the commit record is published the same way: the version exists from here on
//   commit.5  the job's folder is synced: VersionRecorded
//   commit.6  every node has the record: only now anybody is told
// What is not recorded is garbage and the next scan removes it; but of a run of several nodes what
// is sealed is in doubt and stays: another node may have the record already. A version's chunks are
// written in the order of arrival, while later ones are still filled. Several versions may be open
// at the same time: those of writers (ranks save one after another).
//
// Memory: chunks point into the pool; a buffer belongs to the store from write_chunk until its
// ChunkWritten, and from read_chunk until its ChunkRead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "agent/disk/home_orders.h"
#include "agent/version/retention.h"
#include "base/alternative.h"
#include "base/clock.h"
#include "base/ids.h"
#include "format/manifest.h"
#include "store/part_writer.h"
#include "tier/tier.h"

namespace backstay::agent {

// --- commands -------------------------------------------------------------------------------
struct ScanJob {      // answered by Scanned
  bool clean = true;  // removes garbage
};
struct LookAgain {  // which of these others have removed; answered by Looked
  std::vector<VersionNumber> known;
};
struct OpenVersion {
  VersionInfo info;
  std::uint64_t bytes = 0;  // a guess, to reserve room
  // Removed first where there is no room: the order to remove them may still be waiting behind this
  // one.
  Reclaim reclaim = {};
  std::uint64_t hoped_bytes = 0;  // more than `bytes`: reserved instead, where there is room
};
struct WriteChunk {
  VersionNumber version = 0;
  format::ObjectId object;
  std::uint32_t buffer = 0;
  std::span<std::byte> memory;  // the whole slot: length rounded up to 4096; padding is zeroed here
  std::uint32_t length = 0;
  std::uint64_t object_offset = 0;
  std::uint64_t checksum = 0;
};
using SealVersion = store::PartEnd;
struct AbortVersion {  // it will not be written (again); copies of other nodes' parts go, too
  VersionNumber version = 0;
  NodeId node = 0;  // whose part it was: a part that is prepared stays
};
// Of a prepared version; answered by VersionRecorded, VersionFailed or RecordFailed.
struct RecordVersion {
  format::CommitRecord record;  // level: the one to record; committed_ns counts from the writing
  // Only where this node's part is here: one that was removed may be back as a copy of another
  // node's. Of an earlier run, in which this node may have had another number: any part.
  std::optional<NodeId> part = {};
};
struct RemoveVersions {  // answered by Removed
  // In this order. What one that stays needs stays as well, if it stands behind it.
  std::vector<VersionNumber> versions;
};
struct SetAside {  // for good, with a mark on the tier
  VersionNumber version = 0;
  std::string why;
};
struct LoadManifest {  // neither it nor what it needs is removed before DoneReading
  format::CommitRecord record;
  NodeId node = 0;
};
struct ReadChunk {
  VersionNumber version = 0;
  NodeId node = 0;
  std::uint32_t buffer = 0;
  std::span<std::byte> memory;  // the whole slot
  format::ChunkEntry chunk;
  std::uint64_t ticket = 0;          // comes back in ChunkRead
  std::optional<FileOf> older = {};  // the segment of an older version that it lies in
};
struct DoneReading {};  // of the version whose manifest was loaded last
struct Settle {         // answered by Settled once everything before it is done
  std::uint64_t ticket = 0;
};
struct AppendEvent {  // a line for the event log (docs/format/events.md), without its newline
  std::string line;
};
class Command : public std::variant<ScanJob, LookAgain, OpenVersion, WriteChunk, SealVersion,
                                    AbortVersion, RecordVersion, RemoveVersions, SetAside,
                                    LoadManifest, ReadChunk, DoneReading, Settle, AppendEvent> {
 public:
  template <AlternativeOf<variant> T>
  Command(T&& value)  // NOLINT(google-explicit-constructor): as a variant
      : variant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
  Command();
  Command(const Command& other);
  Command(Command&& other) noexcept;
  Command& operator=(const Command& other);
  Command& operator=(Command&& other) noexcept;
  ~Command();
};

// --- events ---------------------------------------------------------------------------------
struct Scanned {
  Result<std::vector<StoredVersion>> versions;
  bool finished = false;  // as the event log says of the last run
};
struct Looked {
  std::vector<VersionNumber> gone;  // versions that were there and are not any more
};
struct ChunkWritten {  // the buffer is the main loop's again, written or not
  VersionNumber version = 0;
  std::uint32_t buffer = 0;
  std::uint32_t bytes = 0;
};
// All of it is on the tier but the record; `in doubt` where the run has several nodes.
struct VersionSealed {
  StoredVersion stored;
  std::shared_ptr<const format::Manifest> manifest = {};
  format::SegmentHeader header = {};
};
struct VersionRecorded {
  StoredVersion stored;
};
struct RecordFailed {  // of a run of several nodes: it stays sealed
  VersionNumber version = 0;
  Level level = Level::none;
  Error error{Code::internal, ""};
};
struct Removed {
  std::vector<VersionNumber> versions;
  std::vector<VersionNumber> stayed = {};  // a restart reads it, or it could not be removed
};
struct ManifestLoaded {  // again: the store does not have the version any more
  VersionNumber version = 0;
  Result<format::Manifest> manifest;
};
struct ChunkRead {
  VersionNumber version = 0;
  std::uint32_t buffer = 0;
  std::uint64_t ticket = 0;
  Status status;
  std::uint32_t bytes = 0;
};
struct VersionDurable {  // of the drain (drain.h)
  StoredVersion stored;
};
struct CopyPrepared {  // of the drain, with several nodes
  std::uint64_t ticket = 0;
  Status status;
  std::optional<StoredVersion> there;  // the version, where it is there already
};
struct PartCopied {  // the same
  std::uint64_t ticket = 0;
  Status status;
  bool source_is_damaged = false;
  std::uint64_t payload_bytes = 0;
  std::uint64_t digest = 0;  // of its manifest, like the next
  std::vector<format::Need> needs = {};
};
struct Settled {
  std::uint64_t ticket = 0;
};
class Event : public std::variant<Scanned, Looked, ChunkWritten, VersionSealed, VersionRecorded,
                                  VersionFailed, RecordFailed, Removed, ManifestLoaded, ChunkRead,
                                  VersionDurable, CopyFailed, CopyPrepared, PartCopied, Settled,
                                  FilesLookedAt, FileBrought, HomeMarked> {
 public:
  template <AlternativeOf<variant> T>
  Event(T&& value)  // NOLINT(google-explicit-constructor): as a variant
      : variant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
  Event(const Event& other);
  Event(Event&& other) noexcept;
  Event& operator=(const Event& other);
  Event& operator=(Event&& other) noexcept;
  ~Event();
};

// What the store's thread does, without the thread: a test may play it step by step. One thread.
class StoreWorker {
 public:
  using MakeTier = std::function<Result<std::unique_ptr<tier::Tier>>()>;
  using PostEvent = std::function<void(Event)>;
  // Writes a line of the event log; may be empty.
  using AppendLine = std::function<void(const std::string&)>;
  StoreWorker(std::string job, const MakeTier& make_tier, PostEvent post_event,
              AppendLine append_event);
  ~StoreWorker();
  StoreWorker(const StoreWorker&) = delete;
  StoreWorker& operator=(const StoreWorker&) = delete;

  void handle(Command command);
  // As handle(), but what is better done together with what comes next (commands_for_later.h) waits
  // for do_later().
  void take(Command command);
  void do_later();
  bool puts_off() const;
  // The tier could be opened. Without one every command ends with that error, or does nothing.
  bool has_tier() const;
  // Requests to the disk are in flight, or were read and not told yet: reap() is to be called.
  bool busy() const;
  // Takes in what has completed; blocks for at least one request if `wait`. What was read is told
  // when nothing more is to be handed to the disk: in reap(true), or when handle() has to wait.
  void reap(bool wait);

  // For DiskThread, by way of StoreInThread.
  std::uint64_t wakes_ns() const { return busy() || puts_off() ? 0 : no_deadline; }
  void carry_on(bool wait) {
    if (wait && puts_off()) return do_later();  // nothing else waits now
    if (busy()) reap(wait);
  }
  void finish() {
    do_later();
    while (busy()) reap(/*wait=*/true);
  }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace backstay::agent
