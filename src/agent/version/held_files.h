// Which files of nodes are on this node's disk, its own and copies that it keeps, and whose objects
// they hold. Main loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/version/file_of.h"
#include "base/ids.h"
#include "format/manifest.h"

namespace backstay::agent {

// Where a file of a node lies in a tier.
struct FileNames {
  std::string folder;
  std::string data;  // the segment, or the parity
  std::string manifest;
};
FileNames names_of(const std::string& job, const FileOf& file);

// Of parity: whose segments it is made of, in the order of the ring, and how many blocks it has.
struct ParityOf {
  std::vector<NodeId> group = {};
  std::uint32_t blocks = 0;
  // It makes up for as many losses, of the same nodes.
  bool makes_up_for(const ParityOf& other) const {
    return group == other.group && blocks >= other.blocks;
  }
};

// A whole file of a node on this node's disk.
struct HeldFile {
  FileOf file;
  std::uint32_t nodes = 1;  // of the version's run, like the next
  std::uint32_t ranks_of_run = 1;
  std::uint64_t segment_bytes = 0;
  std::vector<Rank> ranks;  // that have an object in it; of parity: in a file of its group
  std::optional<format::CommitRecord> record;  // that stands in the folder, of the highest level
  ParityOf of = {};                            // of parity
  // Files of older versions that its chunks lie in; of parity: those of its whole group. Sorted.
  std::vector<FileOf> needs = {};
};

class HeldFiles {
 public:
  // Takes the place of what was said of that file before.
  void add(HeldFile held);
  void remove(const FileOf& file) { files_.erase(file); }
  const HeldFile* find(const FileOf& file) const;
  // All versions, oldest first.
  const std::map<FileOf, HeldFile>& all() const { return files_; }

  // Whose file holds the object of this rank.
  std::optional<NodeId> node_with(VersionOfRun version, Rank rank) const;
  // Parity of the group in which that object is.
  std::optional<FileOf> parity_with(VersionOfRun version, Rank rank) const;
  // Of what the group of this parity needs, and of what that needs in its turn: a version of which
  // this node has no file of its own, or no parity that makes up for the same losses. Others of the
  // group could not make their files of it again. (Parity of an earlier run counts if its group was
  // of the same numbers: then each node has what it had.) Precondition: the parity is held.
  std::optional<VersionNumber> needs_without_parity(const FileOf& parity) const;

 private:
  std::optional<FileOf> file_with(VersionOfRun version, Rank rank, bool parity) const;

  std::map<FileOf, HeldFile> files_;  // ranks sorted
};

}  // namespace backstay::agent
