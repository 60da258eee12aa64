// What the agent knows about one job: its ranks, the versions in the pool, the versions on the
// tier. Capture, Restore and Levels work on it; all in the main loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/memory/pool.h"
#include "agent/version/event_sink.h"
#include "agent/version/pooled_part.h"
#include "agent/version/ranks.h"
#include "agent/version/version_table.h"
#include "base/clock.h"
#include "format/manifest.h"
#include "format/object_id.h"
#include "format/segment.h"
#include "wire/message.h"

namespace backstay::agent {

// A chunk whose bytes are in the pool, or were.
struct HeldChunk {
  format::ObjectId object;
  wire::ChunkInPool in_pool;
  bool in_store = false;  // the store is writing it
  bool written = false;
  bool released = false;  // the buffer was given back
};

// A chunk of a version that lies in an older one.
struct OlderChunk {
  format::Need in;           // that version
  format::ChunkEntry chunk;  // its `need` is not set
};

// How an object came into the pool.
struct ObjectCapture {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t stopped_ns = 0;  // of an unmodified program, if it was stopped
  bool snapshot = false;         // it ran on while its snapshot was copied
};

// A version with bytes in the pool, from the first begin() until its buffers are needed elsewhere.
struct MemoryVersion {
  VersionInfo info;
  std::map<format::ObjectId, std::uint64_t> object_bytes;  // a rank alone: its regions
  std::map<format::ObjectId, ObjectCapture> captures;
  std::vector<HeldChunk> chunks;
  std::shared_ptr<const PooledPart> part = {};  // once this node's part is on the disk
  void sealed(const Pool& pool, const format::Manifest& manifest,
              const format::SegmentHeader& header);
  std::vector<OlderChunk> older;       // beside them: not in the pool, so the version is not whole
  VersionPin base;                     // the version that has them, until this one is safe
  std::vector<format::Need> may_need;  // of several nodes: what parts on others may need as well
  std::unordered_map<std::uint32_t, std::size_t> writing;  // buffer -> chunk the store has
  std::size_t first_held = 0;                              // every chunk before it was released
  bool captured = false;
  bool whole = true;            // every chunk is in the pool: a restart can be served from there
  std::uint64_t handed_ns = 0;  // when its first chunk went to the store, in this try; 0: none did
  std::uint64_t captured_ns = 0;
  std::uint64_t local_ns = 0;
  std::uint64_t written_bytes = 0;
  std::optional<Error> failed;  // the store gave up on it
  bool retries = false;         // it is tried again once the store has given its chunks back
  bool dropping = false;        // release the rest as the store brings it back
  int pins = 0;                 // restores that read from it; nothing is released meanwhile

  // For the event log: what the disk has had of it, from the first chunk on.
  double write_seconds(std::uint64_t now_ns) const {
    return 1e-9 *
           static_cast<double>(now_ns - std::min(now_ns, handed_ns == 0 ? now_ns : handed_ns));
  }

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [object, bytes] : object_bytes) sum += bytes;
    return sum;
  }
  std::uint64_t bytes_in_older() const {
    std::uint64_t sum = 0;
    for (const OlderChunk& one : older) sum += one.chunk.length;
    return sum;
  }
};

// Parts of one version that are on this node's disk.
using Parts = std::vector<std::shared_ptr<const format::Manifest>>;

class StoreLink;  // agent/disk/links.h: this room hands it on and never uses it

struct DurableSettings {
  std::string dir;                // "": none
  std::uint32_t every = 1;        // versions
  std::uint32_t keep = 2;         // good versions there
  std::uint64_t bytes_per_s = 0;  // 0: no limit
  std::uint32_t nodes_max = 0;    // that copy there at once, of several; 0: all
  bool on() const { return !dir.empty(); }
};

struct JobState {
  std::string name;
  std::string dir;
  std::uint32_t keep = 2;
  RunId run = 0;
  NodeId node = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 0;        // of the run
  std::uint32_t local_ranks = 0;  // on this node
  std::uint32_t replicas = 0;     // on other nodes
  bool parity = false;            // instead, groups of nodes keep parity
  std::set<Rank> lost = {};  // ranks of this run that have gone without a word and not come back

  Pool& pool;
  Outbox& outbox;
  StoreLink& store;
  EventSink& events;
  const Clock& clock;

  std::map<Rank, RankLink> links = {};                 // connected ranks of the present run
  VersionTable versions = {};                          // on this node's disk and on shared storage
  std::map<VersionNumber, MemoryVersion> memory = {};  // their pins end before the table
  VersionNumber newest = 0;                            // highest number ever used
  // This node's part of the version that this agent wrote last; and the parts in which the objects
  // of its ranks lie of the version that the run went on from. Chunks of them may be kept by the
  // next version.
  std::shared_ptr<const format::Manifest> newest_part = {};
  Parts brought_back = {};
  bool finished = false;         // no run is present, and the last one ended by itself
  bool finished_before = false;  // the run before the present one did
  // By the ranks of the present run: what they were to restart from does not fit.
  struct Refused {
    Error why;
    std::uint64_t monotonic_ns;
  };
  std::optional<Refused> refused = {};
  std::string cannot_save = {};  // why a rank cannot be saved now; "": it has not said so
  // Of versions of which this node has nothing.
  struct Elsewhere {
    // What the present run was restarted from, with other nodes' disks; number 0: without them.
    VersionOfRun restarted_from = {};
    // The newest that are decided: a record of each is on another node's disk, which proves that
    // all its parts are on disks.
    std::set<VersionOfRun> decided = {};
  };
  Elsewhere elsewhere = {};
  // Newer versions that the restart had to skip look good here, and retention would count them.
  VersionPin went_on_from = {};
  DurableSettings durable_settings = {};
  std::uint32_t durable_looks = 0;     // restarts that have it listed once more, and wait for that
  std::uint64_t lost_patience_ns = 0;  // how long who waits hopes after a loss or return
  // Captured files are brought to their own places: until then a version of them stays.
  bool files_come_home = false;
  // Of captured files: what is not at its own path yet.
  struct NotHome {
    std::uint64_t waiting = 0;  // files
    std::uint64_t waiting_bytes = 0;
    std::uint64_t failed = 0;  // of these: could not be brought so far
    std::uint64_t kept = 0;    // another program's newer file is at their paths
    std::string on_its_way = {};
    std::vector<std::string> warnings = {};  // the newest, in sentences
  };
  NotHome not_home = {};
  std::vector<std::string> notes = {};  // sentences that concern the whole run, for tools
  // The run's other agents: null with one node, and before this one has found them.
  class RemoteFiles* around = nullptr;

  // What a rank refuses outside of a restart: to restart at all, or (code again) to be saved now.
  void take_refusal(Code code, const std::string& why);
  // A checkpoint begins, or a run.
  void forget_refusals();

  bool is_durable(VersionNumber version) const {
    const VersionRow* row = versions.find(version);
    return row != nullptr && row->durable();
  }
  // What lies of it on this node's disk; null: nothing.
  const StoredVersion* on_disk(VersionNumber version) const {
    const VersionRow* row = versions.find(version);
    return row == nullptr || !row->disk ? nullptr : &*row->disk;
  }
  // The part out of the pool; null: it is not there, or not on this node's disk any more.
  std::shared_ptr<const PooledPart> pooled(const store::FileOf& file) const;
  // Neither in memory nor on this node's disk.
  bool is_gone(VersionNumber version) const {
    return !memory.contains(version) && on_disk(version) == nullptr;
  }
  // The pool's copy is on every node's disk, and recorded.
  bool is_local(const MemoryVersion& version) const {
    const VersionRow* row = versions.find(version.info.version);
    return row != nullptr && row->is_of(version.info.run) && row->announced != Level::none;
  }
  // This node's part of it is on the disk, all but the record.
  bool is_prepared(const MemoryVersion& version) const {
    const VersionRow* row = versions.find(version.info.version);
    return row != nullptr && row->is_of(version.info.run);
  }
  // Nothing can take back that its bytes are on this node's disk: the buffers may go. What one node
  // alone has prepared is given up, and written again, where the record cannot be written.
  bool is_safe(const MemoryVersion& version) const {
    return version.info.nodes > 1 ? is_prepared(version) : is_local(version);
  }
  void send_to_all(const wire::Message& message) {
    for (const auto& [rank, link] : links) outbox.send(link.connection, message);
  }
  MemoryVersion* in_memory(VersionNumber version) {
    const auto found = memory.find(version);
    return found == memory.end() ? nullptr : &found->second;
  }
  // A version that a restart can be served with from the pool; else nullptr.
  const MemoryVersion* whole_in_memory(VersionNumber version) const {
    const auto found = memory.find(version);
    if (found == memory.end()) return nullptr;
    const MemoryVersion& held = found->second;
    return held.captured && held.whole && !held.dropping ? &held : nullptr;
  }
  const RankLink* link_of(ConnectionId connection) const {
    for (const auto& [rank, link] : links) {
      if (link.connection == connection) return &link;
    }
    return nullptr;
  }

  // What record() was told, by event; since the job was opened here.
  struct Counted {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  mutable std::map<std::string, Counted, std::less<>> counted = {};

  // Appends to the job's event log (docs/format/events.md); adds time, job, run and node.
  void record(std::string_view event, nlohmann::json fields) const;

  // Gives back every buffer of a version that the store does not hold and forgets the version if
  // none is left. The store's ones follow when they come back.
  void release(VersionNumber version);
  // Gives back one buffer whose bytes are safe on the tier; false where there is none.
  bool release_one_written();
  void forget_if_empty(VersionNumber version);
  // Buffers that could be had at once: free ones and those whose bytes are safe on the tier.
  std::uint32_t buffers_available() const;
  // Drops what this rank left of versions that are local, until `wanted` buffers of its home are
  // free or nothing is left: buffers that it has not touched yet cost it a page fault a page.
  void make_room_at_home(const RankLink& link, std::uint32_t wanted);
  // A buffer for `home`'s owner, at the cost of cached versions if need be.
  std::optional<std::uint32_t> take_buffer(HomeRange home);
};

}  // namespace backstay::agent
