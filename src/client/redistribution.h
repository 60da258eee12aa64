// Bringing a version back on another number of ranks than saved it. Collective.
//
//   1. Rank 0 reads the tables of all saved objects and hands them to every rank.
//   2. Every rank finds out what it needs. For a region with a place in a global array these are
//      the parts of the saved blocks that overlap its own block (they must cover it, each element
//      once). For any other region it is one of the saved copies, which rank 0 has found to be the
//      same on all ranks.
//   3. Every rank reads what it needs and verifies it, without keeping anything.
//   4. All have succeeded: every rank reads it once more, into its regions.
// So nothing is written to a region before every rank has verified every byte that any rank needs,
// and no rank needs memory for a second copy of its regions. The price is reading twice. While rank
// 0 compares, it needs the memory of some buffers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/group.h"
#include "client/object_reader.h"
#include "client/origin.h"
#include "client/pieces.h"
#include "client/regions.h"
#include "format/object.h"

namespace backstay::client {

class Redistribution {
 public:
  // `saved_ranks` saved the version. All arguments outlive this.
  Redistribution(const Group& group, SavedObjects& saved, const Regions& regions,
                 const Origin& origin, VersionNumber version, std::uint32_t saved_ranks);

  // The same outcome on all ranks. `touched`: some rank's regions may have been written to.
  // Errors: as Origin::check(); rank_count (names the region, and what to do), corrupt, io,
  // not_found, agent_lost ...
  Status run(bool& touched);

 private:
  struct Table {
    std::map<std::string, format::Region> arrays;  // by name
    std::vector<std::string> files;
    bool has_streams = false;
  };
  struct Cut {  // of a region without a place
    const std::string& region;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  Result<Buffer> read_tables();
  Status share_tables();
  Status take_table(Bytes tail, std::uint64_t begin);
  Status plan();
  Status check_names() const;
  Status plan_blocks(const ProtectedRegion& present);
  Status plan_copy(const ProtectedRegion& present);
  Status compare_copies();
  Status compare(const std::vector<Cut>& cuts);
  const format::Region* saved_region(Rank rank, const std::string& name) const;
  Error refusal(const std::string& what) const;

  const Group& group_;
  SavedObjects& saved_;
  const Regions& regions_;
  const Origin& origin_;
  const VersionNumber version_;
  const std::uint32_t saved_ranks_;
  std::vector<Table> tables_;  // by saved rank
  Pieces needed_;              // by this rank
};

}  // namespace backstay::client
