// The local tier as the tools see it: directly, without an agent.
//
// Blocks. An agent may add and remove versions meanwhile; a version that is gone when it is read is
// reported as not_found.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/config.h"
#include "capture/image/format/image.h"
#include "format/files.h"
#include "format/manifest.h"
#include "format/object.h"
#include "format/streams.h"
#include "store/catalog.h"
#include "store/part_reader.h"
#include "tier/tier.h"

namespace backstay::bin {

class Stored {
 public:
  // A folder that does not exist holds no jobs.
  static Result<Stored> open(const Config& config);

  const std::string& dir() const { return dir_; }
  tier::Tier& tier() { return *tier_; }

  // Names of all jobs that have a version folder, sorted.
  Result<std::vector<std::string>> jobs();
  // Names of folders that this user may not read: other users' jobs, perhaps. Sorted.
  std::vector<std::string> unreadable();
  // All versions of a job, oldest first; at least one. `ignored`: as of store::scan(). Errors:
  // not_found (names the jobs there are).
  Result<std::vector<store::StoredVersion>> versions(const std::string& job,
                                                     std::vector<std::string>* ignored = nullptr);
  // `number` 0: the newest good one. Errors: not_found, none.
  Result<store::StoredVersion> version(const std::string& job, VersionNumber number);
  // The nodes whose manifests lie here, sorted.
  Result<std::vector<NodeId>> nodes(const std::string& job, VersionNumber version);

 private:
  Stored(std::string dir, std::unique_ptr<tier::Tier> tier)
      : dir_(std::move(dir)), tier_(std::move(tier)) {}
  std::string dir_;
  std::unique_ptr<tier::Tier> tier_;
};

// "complete", "damaged", "incomplete" (being written, or left by a crash)
std::string state_text(const store::StoredVersion& version);

// True if the record counts the payload of the node that wrote it, not that of all nodes
// (docs/format/durable.md sums them up).
bool counts_one_node(const store::StoredVersion& version);

// The newest version that restart would take; nullptr if there is none.
const store::StoredVersion* newest_good(const std::vector<store::StoredVersion>& versions);

// Reads pieces of one node's objects, wherever their chunks lie. One thread.
class NodeReader {
 public:
  static Result<NodeReader> open(tier::Tier& tier, const format::Manifest& manifest);
  // What an object says of its content: regions, captured files. Nothing is believed before its
  // checksum. Precondition: the object is of that kind. Errors: corrupt, io.
  Result<format::Table> table(const format::ObjectEntry& object);
  Result<std::vector<format::CapturedFile>> files(const format::ObjectEntry& object);
  // What its `table` has as streams; empty where it has none.
  Result<std::vector<format::Stream>> streams(const format::ObjectEntry& object,
                                              const format::Table& table);
  // A rank's object may be a whole process instead of its regions; nothing where it is none.
  Result<std::optional<image::Image>> image(const format::ObjectEntry& object);

 private:
  struct Tail {
    format::Footer footer;
    Buffer table;
  };

  NodeReader(tier::Tier& tier, const format::Manifest& manifest)
      : segments_({&tier}, manifest), manifest_(&manifest) {}
  Result<Tail> tail(const format::ObjectEntry& object);
  Result<Buffer> footer(const format::ObjectEntry& object);
  Result<Buffer> read(const format::ObjectEntry& object, std::uint64_t offset,
                      std::uint64_t length);
  store::PartReader segments_;
  const format::Manifest* manifest_;
};

}  // namespace backstay::bin
