// What this node knows of each version of a job: the one home of a version's life
// (docs/protocol/versions.md has the states, and a row for each transition).
//
// Pure: an event in, orders out; no I/O and no clock. The rooms report what happened to a version,
// and the owner (agent/job) carries out what follows for the others: it takes the orders after each
// event. Only this class changes a row.
//
// What lies of a version in the pool is kept apart (job_state.h), as it counts buffers. Main loop's
// thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/version/level_blockers.h"
#include "agent/version/stored.h"
#include "agent/version/version_pin.h"
#include "format/need.h"

namespace backstay::agent {

// A version's columns are independent of each other: a version that is damaged here may be good on
// shared storage.
struct VersionRow {
  // What lies of it on this node's disk. Its level is that of the commit record here: none while it
  // is only prepared.
  std::optional<StoredVersion> disk;
  // The highest level that may be reported. Never above the record here, and behind it until every
  // node has the record.
  Level announced = Level::none;
  // This node's file of it has its replicas or its parity, and the level is not announced yet.
  bool protected_here = false;
  // Why its record could not be written, until it is; `retries`: it is to be tried once more.
  std::optional<Blocker> unrecorded;
  bool retries = false;
  // The store was ordered to remove it, or to record it, and has not answered.
  bool removing = false;
  unsigned recording = 0;  // how many such orders: for local, and soon after it for protected
  // What lies of it on shared storage.
  std::optional<StoredVersion> shared;

  // May be reported, or was: what users see as a version on this node's disk.
  bool is_listed() const { return disk && (announced != Level::none || !disk->damage.empty()); }
  bool good() const { return disk && announced != Level::none && disk->damage.empty(); }
  // On this node's disk, of a run of several nodes, and without a record here: another node may
  // have one.
  bool in_doubt() const { return disk && disk->in_doubt; }
  bool durable() const { return shared && shared->good(); }
  // Recorded here, and not announced yet at that level.
  bool awaits_announcement() const {
    return disk && disk->damage.empty() && disk->level > announced;
  }
  bool is_of(RunId run) const { return disk && disk->record.run == run; }
};

// Where a version lies.
enum class Where { disk, shared };

// What the store does with a version that is on the disk.
enum class StoreOrder { remove, record };

// A level of a version may be reported from now on.
struct Announcement {
  StoredVersion version;  // with that level
  Level before = Level::none;
};

// What the owner has to carry out.
struct VersionOrders {
  std::vector<Announcement> announced;  // in order
  std::vector<VersionNumber> gone;      // from this node's disk: each room forgets its files of it
  std::set<VersionNumber> changed;      // their level, or why they do not reach one
  bool all_changed = false;             // why none gets further
  bool retain = false;                  // retention is due
  bool empty() const {
    return announced.empty() && gone.empty() && changed.empty() && !all_changed && !retain;
  }
};

// What lies on this node's disk beside the rows: what the files of versions need
// (docs/format/manifest.md, "Chunks in older versions"), and copies without a version.
class VersionNeeds {
 public:
  // A file of it that came here needs these, also where the version has no row yet: a copy of
  // another node's part may come before this node's own. They stay until the version is gone.
  void needs(VersionOfRun version, std::span<const format::Need> needs);
  // The newest version on this node's disk that needs it, but for `others`; 0: none does. What a
  // kept version needs is kept with it. Run 0: it is not known, as its record cannot be read.
  VersionNumber needed_by(VersionOfRun version, std::span<const VersionNumber> others = {}) const;
  // What it needs, as far as this node knows.
  std::span<const format::Need> needs_of(VersionOfRun version) const;

  // Versions without a row of which files of other nodes lie here, and no record: this node has no
  // part in their commit, but retention removes them.
  const std::map<VersionNumber, StoredVersion>& copies() const { return copies_; }
  // Of these, those that the store was ordered to remove.
  const std::set<VersionNumber>& leaving_copies() const { return leaving_copies_; }

 protected:
  // True: it needed others, which may be expired now.
  bool forget_needs(VersionNumber version);
  std::map<VersionNumber, StoredVersion> copies_;
  std::set<VersionNumber> leaving_copies_;

 private:
  std::map<VersionOfRun, std::vector<format::Need>> needs_;
};

class VersionTable : public VersionNeeds, public LevelBlockers {
 public:
  using Rows = std::map<VersionNumber, VersionRow>;

  const Rows& rows() const { return rows_; }
  const VersionRow* find(VersionNumber version) const;
  // Pinned for reason `why`; without `why`, for any reason.
  bool is_pinned(VersionNumber version, std::optional<PinReason> why = std::nullopt) const {
    const auto pins = pins_.find(version);
    return pins != pins_.end() && (!why || pins->second[static_cast<std::size_t>(*why)] != 0);
  }
  // The newest that is announced as protected in the present run; 0: none. The largest number there
  // is where the run protects nothing: then nothing will be announced, and all that is recorded
  // counts.
  VersionNumber newest_announced() const { return newest_announced_; }

  // A run begins. `protects`: it makes replicas or parity. A record that was not announced in time
  // counts as local from now on: it proves that every node had its part, and the nodes that would
  // have announced it may be gone. A protected record of the same run
  // proves that every node held its part, not that every node recorded it: such a version is
  // reported as local until it is announced again. What is here only as copies of other nodes'
  // parts is not this node's.
  void begin_run(RunId run, NodeId node, std::uint32_t nodes, bool protects);

  // --- this node's disk ---
  // The store could not write it, or give it its record: nothing is left of this node's part.
  void write_failed(VersionNumber version);
  // This node's part is on the disk, all but the record.
  void prepared(const StoredVersion& stored, NodeId node);
  void recorded(const StoredVersion& stored);
  void record_failed(VersionNumber version, Level level, const Error& why);
  // Records that could not be written, to be tried once more now.
  std::vector<std::pair<VersionNumber, Level>> take_retries();

  // --- all nodes of its run ---
  // This node's file has its replicas or its parity.
  void replicated(VersionNumber version);
  // Every node has recorded it at that level.
  void announced(VersionOfRun version, Level level);

  // --- shared storage ---
  // Another directory is used, or the directory is listed once more.
  void forget_shared();

  // --- either place ---
  // By a scan; on the disk also as copies of a version of which this node has no part; on shared
  // storage once it is copied.
  void found(const StoredVersion& stored, Where where);
  // Found damaged, for good.
  void quarantined(VersionNumber version, Where where, const std::string& why);
  // It could not be read just now, or (`on` false) it could again: nothing older is removed for its
  // sake meanwhile.
  void doubted(VersionNumber version, Where where, bool on);
  // Nothing is left of it there.
  void removed(VersionNumber version, Where where);

  // --- orders to the store (retention.h decides what is removed) ---
  // The store was ordered to remove it from the disk (also as copies without a row), or to write
  // its record; `on` false: it could not remove it.
  void ordered(VersionNumber version, StoreOrder what, bool on = true);

  // Another room knows something new about it: the pool, shared storage.
  void changed(VersionNumber version) { orders_.changed.insert(version); }
  // What is to be carried out since the last call; of level blockers too.
  VersionOrders take_orders();

 private:
  friend class VersionPin;
  void pin(VersionNumber version, PinReason why);
  void unpin(VersionNumber version, PinReason why);
  VersionRow* row_on_disk(VersionNumber version);
  std::optional<StoredVersion>* place(VersionNumber version, Where where);
  void leave_disk(VersionNumber version);
  // What is true of each row after each event.
  void check(VersionNumber version) const;

  Rows rows_;
  // How often each version is pinned, by reason. A version without pins has no entry.
  std::map<VersionNumber, std::array<unsigned, pin_reasons>> pins_;
  VersionOrders orders_;
  RunId run_ = 0;
  VersionNumber newest_announced_ = 0;
};

// The store was ordered to remove it from the disk and has not answered: a pin comes too late.
bool is_leaving(const VersionTable& table, VersionNumber version);

}  // namespace backstay::agent
