// Topologies of communicators.
#pragma once

#include "capture/mpi_library/kept.h"

namespace backstay::mpi {

struct Topology {
  int kind;           // 0: none; else that of MPI_Topo_test
  Kept<int> numbers;  // dims, periods; or index, edges; or sources, destinations, weights of both
  int first, second;  // how many dims; nodes, edges; sources, destinations
  bool is_weighted;
};

Topology topology_of(uint64_t real_comm);
// The real communicator with the topology, of one that has the same members. Collective.
uint64_t make_topology(const Topology& topology, uint64_t over);

}  // namespace backstay::mpi
