// Reads the manifests and chunks of one version, wherever they are: on the node's disk (the store's
// thread), in the durable directory (the drain's), on the disks of other agents (FileReader). What
// was read is not checked against anything but its manifest's own checksum; who uses a chunk
// verifies it.
//
// A buffer of the pool belongs to the reader from read() until it arrives; what is in flight at
// close() does not arrive any more, and its buffer goes back to the pool when it comes. Must live
// until idle(). Main loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "agent/disk/store.h"
#include "agent/restart/source.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

using ManifestPtr = std::shared_ptr<const format::Manifest>;

// A manifest, and where it was found: a source that names its node.
struct Located {
  Source source;
  ManifestPtr manifest;
};

class VersionReader {
 public:
  using Loaded = std::function<void(const Result<Located>&)>;
  using Arrived = std::function<void(std::size_t index, std::uint32_t buffer, const Source& source,
                                     const Status& status)>;
  VersionReader(JobState& state, Arrived arrived) : state_(state), arrived_(std::move(arrived)) {}
  VersionReader(const VersionReader&) = delete;
  VersionReader& operator=(const VersionReader&) = delete;

  // Precondition: closed. `found.sources` do not count.
  void open(const FoundVersion& found);
  // The manifest that has the rank's object; where the source names no node, all are looked at,
  // beginning with the likeliest. Where none has it, the last that could be read. Calls `loaded`
  // once, at once or later, unless closed before. Errors: not_found, again (removed meanwhile),
  // agent_lost, io, corrupt, format.
  void locate(const Source& source, Rank rank, Loaded loaded);
  // Of a source that names its node, which has the manifest; `index` is the caller's. A chunk of an
  // older version lies in the same place. Calls Arrived later.
  void read(const Source& source, const format::Manifest& manifest, const format::ChunkEntry& chunk,
            std::uint32_t buffer, std::size_t index);
  void close();

  // Reads that have not arrived.
  std::size_t reading() const { return reading_.size(); }
  // Nothing is in flight, not even of what was closed.
  bool idle() const { return reading_.empty() && orphans_.empty() && loads_ == 0; }

  void on(const ManifestLoaded& event, Place place);
  void on(const ChunkRead& event) { arrived(event.ticket, event.status); }

 private:
  using Waiting = std::function<void(const Result<ManifestPtr>&)>;
  struct Reading {
    std::size_t index = 0;
    std::uint32_t buffer = 0;
    Source source;
  };

  void load(const Source& source, Waiting waiting);
  void load_from_disk(const Source& source);
  format::CommitRecord record_at(Place place) const;
  void load_from_agent(const Source& source);
  void loaded(const Source& source, const Result<ManifestPtr>& manifest);
  Result<ManifestPtr> check(const Source& source, const Result<Buffer>& bytes) const;
  void look_at_next(std::shared_ptr<std::vector<NodeId>> nodes, std::size_t at, Source source,
                    Rank rank, Loaded done);
  void arrived(std::uint64_t ticket, const Status& status);
  void post(Place place, Command command);
  FileOf file_of(const Source& source) const {
    return {version_.first, version_.second, source.node};
  }

  JobState& state_;
  const Arrived arrived_;
  VersionOfRun version_;
  std::uint32_t nodes_ = 1;  // of its run
  std::uint32_t ranks_ = 0;
  std::uint64_t opened_ = 0;  // how often: answers to what was asked before do not count
  std::map<Source, ManifestPtr> manifests_;
  std::map<Source, std::vector<Waiting>> waiting_;
  // What store and drain were asked for, in the order in which they answer; nothing: closed
  // meanwhile.
  std::map<Place, std::deque<std::optional<Source>>> asked_;
  std::size_t loads_ = 0;
  std::map<Place, bool> keeps_;  // the store, the drain keep the version for us
  std::uint64_t next_ticket_ = 1;
  std::map<std::uint64_t, Reading> reading_;
  std::map<std::uint64_t, std::uint32_t> orphans_;  // ticket -> buffer
};

}  // namespace backstay::agent
