// A file of a node in a tier: where it lies, and what is known of one that is whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/manifest.h"
#include "store/file_of.h"

namespace backstay::store {

// The names of a node's file in a tier.
struct FileNames {
  std::string folder;
  std::string data;  // the segment, or the parity
  std::string manifest;
};
FileNames names_of(const std::string& job, const FileOf& file);

// The make of a parity file.
struct ParityOf {
  std::vector<NodeId> group = {};  // whose segments it is made of, in the order of the ring
  std::uint32_t blocks = 0;
  // It makes up for as many losses, of the same nodes.
  bool makes_up_for(const ParityOf& other) const {
    return group == other.group && blocks >= other.blocks;
  }
};

// A whole file of a node.
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

}  // namespace backstay::store
