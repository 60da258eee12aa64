// Bringing one rank's object back (docs/protocol/agent.md, "Restart").
//
// Pass 1, verify: every chunk is checked against its checksum, the region table is decoded and
//   matched with what the program protects. Good chunks from the disk are exchanged with the
//   target's bytes as soon as the table is known: the copying overlaps with reading, and can be
//   undone. A damaged chunk makes the agent withdraw the plan; a mismatch is refused. The last
//   `verified` is sent only after the match, so `deliver` means that every rank has verified and
//   accepted everything.
// Pass 2, deliver: chunks still held in the pool are copied; the others come again and are checked
//   again while they are copied, but for those that a target has taken in pass 1 (takes_early).
// On several nodes the ranks of all nodes agree between the passes: at `ready`, or when the plan
// has failed before. A new plan replaces all of the one before. An end before `deliver` leaves the
// target as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/result.h"
#include "client/connection.h"
#include "format/object.h"

namespace backstay::client {

// The receiver of the bytes of an object of any kind. Called in this order: tail_bytes and
// match_tail once a plan, place for every chunk, finish.
class ObjectTarget {
 public:
  virtual ~ObjectTarget() = default;
  // The bytes at the object's end that hold the table of a version that this target accepts; more
  // is kept.
  virtual std::uint64_t table_bytes() const = 0;
  // How many bytes at the object's end match_tail() needs, the footer included. `footer`: the last
  // format::object_footer_bytes ones. Errors: corrupt, format, mismatch (of another kind).
  virtual Result<std::uint64_t> tail_bytes(Bytes footer, std::uint64_t object_bytes) = 0;
  // Checks that the target accepts the version. `tail`: as many bytes as tail_bytes() said.
  // Errors: none (for this run there is no version yet), mismatch, not_found, corrupt; nothing was
  // touched.
  virtual Status match_tail(Bytes tail, std::uint64_t object_bytes) = 0;
  // Takes a chunk. `sum` (may be nullptr) must have seen every byte of it on return.
  virtual Status place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) = 0;
  // Exchanges the chunk's bytes with those that the target holds in their place; a second call puts
  // both back. False: it cannot, nothing was touched.
  virtual bool exchange(std::uint64_t object_offset, std::span<std::byte> chunk) = 0;
  // Whether chunks may be placed before the other ranks have verified theirs, and while they are
  // verified: nothing of the target is used before finish(), and match_tail() of a later plan drops
  // what was placed.
  virtual bool takes_early() const { return false; }
  // Everything has been placed.
  virtual Status finish() = 0;
};

// The receiver of an object of kind regions.
class RestoreTarget : public ObjectTarget {
 public:
  Result<std::uint64_t> tail_bytes(Bytes footer, std::uint64_t object_bytes) final;
  Status match_tail(Bytes tail, std::uint64_t object_bytes) final;
  // As match_tail(), with the decoded table.
  virtual Status match(const format::Table& saved) = 0;
};

struct RestoreOutcome {
  Status status;
  Status agreed;  // whether all ranks have verified everything, if they were asked
  VersionNumber version = 0;
  std::uint32_t saved_ranks = 0;  // with rank_count: how many ranks saved `version`
  bool may_be_base = false;       // as Plan has it
  bool touched = false;           // the target may have been written to
  bool complete = false;          // the target has everything and finish() succeeded
};

class Restore {
 public:
  // Makes the ranks of the job agree; called exactly once in run(). Empty with one node.
  using Agree = std::function<Status(const Status& mine)>;
  Restore(Connection& agent, ObjectTarget& target, Agree agree = {})
      : agent_(agent), target_(target), agree_(std::move(agree)) {}

  // Sends `first` (a Restart) and follows the protocol to its end. Blocks.
  // Errors: none, rank_count, mismatch, not_found, corrupt, agent_lost, rank_lost, io ...
  RestoreOutcome run(const wire::Message& first);

 private:
  enum class Phase { waiting, verifying, refused, agreed, delivering, restored };
  struct Extent {
    std::uint32_t buffer;
    std::uint32_t length;
    std::uint64_t offset;
  };
  struct TailChunk {
    std::uint64_t offset;
    Buffer bytes;
  };

  // Each takes a message; `over_` is set once the outcome is known.
  Status on(const wire::Plan& plan);
  Status on(const wire::Chunks& chunks);
  Status on(const wire::Ready& ready);
  Status on(const wire::Deliver& deliver);
  Status on(const wire::Withdraw& withdraw);
  Status on(const wire::Captured& captured);

  Status verify(const wire::Chunks& chunks);
  Status verify_one(const wire::ChunkInPool& chunk, bool held);
  bool takes_now(bool held) const;
  Status check_sum(const wire::ChunkInPool& chunk, Bytes memory, bool takes);
  void keep_tail(std::uint64_t offset, Bytes chunk);
  std::uint64_t tail_bytes_kept() const;
  Result<Buffer> last_bytes(std::uint64_t bytes);
  std::uint64_t tail_at_hand() const;
  Status look_for_table();
  Status check_cover();
  Status place_with_table(const wire::Chunks& chunks, bool& placed);
  Status place_early();
  void exchange_held();
  void take_back();
  Status again(const wire::Chunks& chunks);
  Status place_again(const wire::ChunkInPool& chunk);
  Status finish_if_complete();
  Status give_up(const Status& why);

  Connection& agent_;
  ObjectTarget& target_;
  const Agree agree_;
  bool asked_ = false;  // all ranks
  Phase phase_ = Phase::waiting;
  RestoreOutcome outcome_;
  std::uint32_t attempt_ = 0;  // of the present plan
  bool over_ = false;
  std::uint64_t object_bytes_ = 0;
  bool from_pool_ = false;
  std::optional<Status> matched_;  // the target's answer to the region table, once that is known
  std::uint64_t verified_bytes_ = 0;
  std::uint64_t placed_bytes_ = 0;
  std::vector<Extent> seen_;       // all of the plan
  std::vector<Extent> held_;       // those that stay in the pool and wait for `deliver`
  std::vector<Extent> exchanged_;  // those whose bytes the target has already
  std::vector<TailChunk> tail_;    // of those that do not stay, until the table is known
  Checksum sum_;
};

}  // namespace backstay::client
