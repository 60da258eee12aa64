// Files that several writers write together, field by field, with MPI-IO's collective calls.
// Groups of one rank are the paper's collective I/O (coIO); larger ones its writers with nf < ng.
//
// The first writer of a file lays the fields out, writes the header, and puts the manifest. An
// error on one rank does not end the calls that others make with it: all agree once the file is
// closed.
#pragma once

#include <optional>
#include <vector>

#include "strategy/strategy.h"
#include "strategy/writer_group.h"

namespace backstay::strategy {

class SharedFiles final : public Strategy {
 public:
  // `each`: ranks a group. `files`: at most as many as groups.
  SharedFiles(const Ranks& ranks, int each, std::uint32_t files);
  std::uint32_t files() const override { return files_; }
  Status write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) override;

 private:
  // One version, as a rank that writes sees it.
  struct Version {
    BytesOfFields shapes;                // of its group's members
    std::vector<std::uint64_t> offsets;  // of its fields in the file
    std::uint64_t rounds = 0;            // the most writes that any writer of the file needs
    std::uint64_t end = 0;               // of the file
    std::vector<format::ChunkEntry> chunks;
  };
  bool leads() const { return ranks_.group.rank() == writers_.front(); }
  std::string path_of(const NewVersion& version) const;
  void tell_ignored_hints() const;
  Status prepare();
  std::vector<std::uint64_t> needs_of(const BytesOfFields& shapes) const;
  Status lay_out(const client::Snapshot& snapshot, Version& version) const;
  Status write_header(const NewVersion& version) const;
  Status write_fields(client::Snapshot& snapshot, Version& version);
  Status publish(const NewVersion& version, Version& written) const;

  const Ranks ranks_;
  const std::uint32_t files_;
  const std::uint64_t align_;
  const std::size_t round_pieces_;  // at most, in one collective write
  WriterGroup group_;
  std::optional<AlignedMemory> buffer_;  // of a rank that writes: a round's pieces
  bool is_first_ = true;                 // no version was written yet
  int file_ = -1;                        // of this rank; -1: it does not write
  std::vector<int> writers_;             // of that file
};

}  // namespace backstay::strategy
