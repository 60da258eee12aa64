#include "capture/mpi_library/degrees.h"

#include <indices.h>

namespace backstay::mpi {

Degrees peers_of(abi::Handle<Class::comm> comm) {
  int inter = 0;
  int size = 0;
  inside(index_MPI_Comm_test_inter, abi::real<Class::comm>(comm), &inter);
  const uint32_t index = inter != 0 ? index_MPI_Comm_remote_size : index_MPI_Comm_size;
  inside(index, abi::real<Class::comm>(comm), &size);
  return {size, size};
}

Degrees degrees_of(abi::Handle<Class::comm> comm) {
  const uint64_t real = abi::real<Class::comm>(comm);
  Degrees degrees;
  int kind = -1;
  int own = 0;
  int weighted = 0;
  inside(index_MPI_Topo_test, real, &kind);
  if (kind == abi::distributed_graph) {
    inside(index_MPI_Dist_graph_neighbors_count, real, &degrees.in, &degrees.out, &weighted);
  } else if (kind == abi::graph) {
    inside(index_MPI_Comm_rank, real, &own);
    inside(index_MPI_Graph_neighbors_count, real, own, &degrees.in);
    degrees.out = degrees.in;
  } else if (kind == abi::cartesian) {
    inside(index_MPI_Cartdim_get, real, &degrees.in);
    degrees.out = degrees.in *= 2;
  }
  return degrees;
}

}  // namespace backstay::mpi
