// One file of a version that several ranks, its members, write together by MPI-IO. The first member
// leads: it lays the slots out, writes the header, and puts the manifest.
//
// Called in this order, by every rank of the job: lay_out(), open(), begin() and end() for each
// round, close(), publish(). A rank without a file (`group` -1) calls open() alone. An error of one
// call on one rank does not end the others': the members go on to close(), and agree then.
#pragma once

#include <cstdint>
#include <vector>

#include "strategy/fields.h"
#include "strategy/strategy.h"

namespace backstay::strategy {

class GroupFile {
 public:
  // `group`: the number of the file, of `files`; -1: none. `members`: their ranks in order.
  GroupFile(const Ranks& ranks, int group, std::uint32_t files, std::vector<int> members);

  // Places in the file are multiples of it.
  std::uint64_t align() const { return align_; }
  // `extents`: bytes of this member's fields, multiples of align().
  Status lay_out(const std::vector<std::uint64_t>& extents);
  // How many times every member calls begin() and end(): the most fields of any.
  std::uint64_t rounds() const { return rounds_; }
  // Of this member. Precondition: it has such a field.
  std::uint64_t offset(std::uint64_t field) const { return offsets_[field]; }

  Status open(const NewVersion& version);
  // `extent` bytes at the field's place: `data` and zeros. `data` stays as it is until end(). Past
  // this member's fields it takes part with nothing.
  Status begin(std::uint64_t field, Bytes data, std::uint64_t extent);
  Status end();
  Status close();
  // `chunks`: of this member. `report` of the leader gets what the part holds.
  Status publish(const NewVersion& version, const std::vector<format::ChunkEntry>& chunks,
                 RankReport& report);

 private:
  bool leads() const { return ranks_.group.rank() == members_.front(); }
  Status write_header(const NewVersion& version);

  const Ranks& ranks_;
  const int group_;
  const std::uint32_t files_;
  const std::vector<int> members_;
  const std::uint64_t align_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t rounds_ = 0;
  std::uint64_t end_ = 0;  // of the file
  bool is_open_ = false;
};

}  // namespace backstay::strategy
