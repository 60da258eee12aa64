// The ranks of a job as one of them sees them: its own place, and agreement of all.
//
// A thin owner of the caller's backstay_group; a program of one process has a Group of one rank
// that makes no calls. Every function but the observers is collective and blocks until all ranks
// have called it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backstay/backstay.h"
#include "base/result.h"

namespace backstay::client {

class Group {
 public:
  // One process.
  Group();
  // Copies `group`. The caller has checked it with check_group().
  explicit Group(const backstay_group& group) : group_(group) {}

  int rank() const { return group_.rank; }
  int ranks() const { return group_.ranks; }
  int local_rank() const { return group_.local_rank; }
  int local_ranks() const { return group_.local_ranks; }
  int node() const { return group_.node; }
  int nodes() const { return group_.nodes; }
  // The launcher's, for its own functions.
  void* context() const { return group_.context; }

  // The bytes of rank `root` on all ranks. Errors: internal (the launcher's function failed).
  Status broadcast(void* data, std::size_t bytes, int root = 0) const;
  Result<std::int64_t> minimum(std::int64_t value) const;
  Result<std::int64_t> maximum(std::int64_t value) const;
  // The lowest rank of a node. Errors: as minimum(), invalid (it has none).
  Result<int> first_rank_of(int node) const;

  // The same outcome on all ranks: the gravest of their errors, in the words of one that has it. A
  // rank's own cause ranks above "a rank was lost" and "the agent was lost", which are its
  // consequences on the other ranks. The message names that rank, and on several nodes its host.
  Status agree(const Status& mine) const;

  // Calls the launcher's release function.
  void release();

 private:
  backstay_group group_;
};

// Errors: invalid (names the field).
Status check_group(const backstay_group& group);

}  // namespace backstay::client
