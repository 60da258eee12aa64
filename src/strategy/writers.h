// Writer groups (paper 004's rbIO): workers send their objects to the first rank of their group,
// which writes for all of them, field by field.
//
//   Writers            a file each writer (nf = ng). Its thread, which never calls MPI, writes
//   while
//                      the program computes; the next version waits for it (the paper's lambda).
//   CollectiveWriters  fewer files: writers that share one write it together by MPI-IO, inside of
//   the
//                      call.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "strategy/fields.h"
#include "strategy/group_file.h"
#include "strategy/strategy.h"
#include "strategy/writer_thread.h"

namespace backstay::strategy {

// A piece of a member's object on its way to the file.
struct Chunk {
  Rank rank = 0;
  std::uint64_t object_offset = 0;
  std::uint32_t length = 0;
};
// Puts the piece into memory of its length, and sets its checksum.
using Fill = std::function<Status(std::span<std::byte> memory, std::uint64_t& sum)>;
using TakePiece = std::function<Status(const Chunk& chunk, const Fill& fill)>;

// The ranks whose objects come to one writer, and what they are made of.
class WriterGroup {
 public:
  // `each`: ranks a group.
  WriterGroup(const Ranks& ranks, std::uint32_t each);
  bool writes() const { return ranks_.group.rank() == first_; }
  int number() const { return number_; }
  int count() const { return count_; }
  int first() const { return first_; }

  // A worker's side: all of its object, field by field. Between the two the object stays as it is;
  // after the second all was received.
  Status begin_sending(const client::Snapshot& snapshot);
  Status finish_sending(RankReport& report);

  // The writer's side: the shapes of all members' fields, by member; its own come first.
  Result<std::vector<std::vector<FieldShape>>> shapes(const client::Snapshot& snapshot) const;
  // All pieces of one field, in the order of the members: each is filled once `take` calls `fill`.
  Status each_piece(const client::Snapshot& snapshot,
                    const std::vector<std::vector<FieldShape>>& shapes, std::size_t field,
                    const TakePiece& take) const;

 private:
  Status receive(int rank, std::span<std::byte> piece, std::uint64_t& sum) const;

  const Ranks ranks_;
  const int number_;
  const int count_;
  const int first_;
  const int last_;  // one behind
  // Of a worker, until all was received.
  std::vector<FieldShape> shapes_;
  std::vector<Buffer> rooms_;
  std::deque<std::uint64_t> sums_;
  std::uint64_t began_ns_ = 0;
  std::uint64_t handed_ns_ = 0;
};

class Writers final : public Strategy {
 public:
  Writers(const Ranks& ranks, std::uint32_t each);
  std::uint32_t files() const override { return static_cast<std::uint32_t>(group_.count()); }
  Status write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) override;
  bool writes_behind() const override { return true; }
  Status settle(RankReport& report) override;
  Status so_far() override;

 private:
  Status take_in(const NewVersion& version, const client::Snapshot& snapshot, RankReport& report);

  const Ranks ranks_;
  WriterGroup group_;
  std::unique_ptr<WriterThread> thread_;  // of a rank that writes
};

class CollectiveWriters final : public Strategy {
 public:
  // `files`: fewer than there are groups.
  CollectiveWriters(const Ranks& ranks, std::uint32_t each, std::uint32_t files);
  std::uint32_t files() const override { return files_; }
  Status write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) override;

 private:
  Status lay_out(const client::Snapshot& snapshot, GroupFile& file);
  Status write_fields(const client::Snapshot& snapshot, GroupFile* file);

  const Ranks ranks_;
  WriterGroup group_;
  const std::uint32_t each_;
  const std::uint32_t files_;
  // Of the present version, of a rank that writes.
  std::vector<std::vector<FieldShape>> shapes_;
  std::vector<std::uint64_t> extents_;  // by field
  std::vector<format::ChunkEntry> chunks_;
};

}  // namespace backstay::strategy
