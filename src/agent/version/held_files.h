// Which files of nodes are on this node's disk, its own and copies that it keeps, and whose objects
// they hold. Main loop's thread.
#pragma once

#include <map>
#include <optional>

#include "agent/version/stored.h"

namespace backstay::agent {

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
