// Members of a group or communicator: their ranks in MPI_COMM_WORLD, in order, as runs. A restart
// leaves those ranks as they are.
#pragma once

#include "capture/mpi_library/made.h"

namespace backstay::mpi {

// As MPI_Group_range_incl takes it.
struct Run {
  int first, last, stride;
};
inline int length(const Run& run) { return (run.last - run.first) / run.stride + 1; }

struct Members {
  Kept<Run> runs;
  bool is_foreign;  // some belong to another MPI_COMM_WORLD: nothing of ours can bring them back
};

// Each member's rank in MPI_COMM_WORLD. The caller clears it.
Kept<int> ranks_of(const Members& members);

struct GroupMade : Made {
  Members members;
};

Members members_of(uint64_t real_group);
// A real group out of one that is as large as MPI_COMM_WORLD. The caller frees what it does not
// keep.
uint64_t make_group(const Members& members, uint64_t out_of);
void free_group(uint64_t real_group);
// MPICH 4.0.2 crashes in MPI_Comm_create_group on a communicator whose group was never asked for.
void ask_for_group(uint64_t real_comm);
// Forgets the group of MPI_COMM_WORLD, which belongs to one MPI.
void forget_world();

Made* describe_group(uint64_t real);
uint64_t renew_group(const Made* made);

}  // namespace backstay::mpi
