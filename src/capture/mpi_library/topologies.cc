#include "capture/mpi_library/topologies.h"

#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

int* room_for(Kept<int>& numbers, int count) {
  while (numbers.count < static_cast<uint32_t>(count)) numbers.add(0);
  return numbers.all;
}

void read_cartesian(uint64_t comm, Topology& to) {
  inside(index_MPI_Cartdim_get, comm, &to.first);
  int* all = room_for(to.numbers, 3 * to.first);  // the coordinates are left in the last third
  inside(index_MPI_Cart_get, comm, to.first, all, all + to.first, all + 2 * to.first);
}

void read_graph(uint64_t comm, Topology& to) {
  inside(index_MPI_Graphdims_get, comm, &to.first, &to.second);
  int* all = room_for(to.numbers, to.first + to.second);
  inside(index_MPI_Graph_get, comm, to.first, to.second, all, all + to.first);
}

void read_distributed(uint64_t comm, Topology& to) {
  int weighted = 0;
  inside(index_MPI_Dist_graph_neighbors_count, comm, &to.first, &to.second, &weighted);
  to.is_weighted = weighted != 0;
  int* all = room_for(to.numbers, 2 * (to.first + to.second));
  int* destinations = all + to.first;
  int* weights = destinations + to.second;
  inside(index_MPI_Dist_graph_neighbors, comm, to.first, all, weights, to.second, destinations,
         weights + to.first);
}

int make_distributed(const Topology& topology, uint64_t over, uint64_t* real) {
  int* sources = topology.numbers.all;
  int* destinations = sources + topology.first;
  int* weights = destinations + topology.second;
  void* const no_weights = abi::unweighted();
  return inside(index_MPI_Dist_graph_create_adjacent, over, topology.first, sources,
                topology.is_weighted ? weights : no_weights, topology.second, destinations,
                topology.is_weighted ? weights + topology.first : no_weights,
                abi::null<Class::info>(), 0, real);
}

}  // namespace

Topology topology_of(uint64_t real_comm) {
  Topology topology{};
  int kind = abi::undefined;
  inside(index_MPI_Topo_test, real_comm, &kind);
  if (kind == abi::undefined) return topology;
  topology.kind = kind;
  if (kind == abi::cartesian) read_cartesian(real_comm, topology);
  if (kind == abi::graph) read_graph(real_comm, topology);
  if (kind == abi::distributed_graph) read_distributed(real_comm, topology);
  return topology;
}

uint64_t make_topology(const Topology& topology, uint64_t over) {
  uint64_t real = 0;
  int* all = topology.numbers.all;
  const int first = topology.first;
  if (topology.kind == abi::cartesian) {
    must(inside(index_MPI_Cart_create, over, first, all, all + first, 0, &real),
         "a cartesian communicator");
  } else if (topology.kind == abi::graph) {
    must(inside(index_MPI_Graph_create, over, first, all, all + first, 0, &real),
         "a communicator with a graph");
  } else {
    must(make_distributed(topology, over, &real), "a communicator with a distributed graph");
  }
  return real;
}

}  // namespace backstay::mpi
