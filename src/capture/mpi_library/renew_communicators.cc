// All communicators of the program, each by a call of its members alone: MPI_Comm_create_group on
// the hidden one, in the order of their numbers. Of those that a rank and another one both have,
// both make the lowest first; so no ranks wait for each other in a circle.
#include <stdlib.h>

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/hidden.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

void free_communicator(uint64_t real) { inside(index_MPI_Comm_free, &real); }

uint64_t make_local(uint64_t world, const CommunicatorMade& made) {
  const uint64_t group = make_group(made.local, world);
  uint64_t real = 0;
  must(inside(index_MPI_Comm_create_group, real_for_mpi(), group, 0, &real), "a communicator");
  free_group(group);
  return real;
}

uint64_t make_between(const CommunicatorMade& made, uint64_t local) {
  uint64_t real = 0;
  must(inside(index_MPI_Intercomm_create, local, 0, real_for_mpi(), made.remote.runs[0].first, 0,
              &real),
       "an inter-communicator");
  return real;
}

uint64_t make_shape(uint64_t world, const CommunicatorMade& made) {
  const uint64_t local = make_local(world, made);
  if (!made.is_inter && made.topology.kind == 0) return local;
  const uint64_t real =
      made.is_inter ? make_between(made, local) : make_topology(made.topology, local);
  free_communicator(local);
  return real;
}

uint64_t make(uint64_t world, const CommunicatorMade& made) {
  const uint64_t shape = make_shape(world, made);
  if (made.given.count == 0) return shape;
  uint64_t hints = make_info(made.given);
  uint64_t real = 0;
  must(inside(index_MPI_Comm_dup_with_info, shape, hints, &real), "a communicator with hints");
  inside(index_MPI_Info_free, &hints);
  free_communicator(shape);
  return real;
}

int by_number(const void* a, const void* b) {
  return compare((*static_cast<CommunicatorMade* const*>(a))->number,
                 (*static_cast<CommunicatorMade* const*>(b))->number);
}

}  // namespace

void renew_communicators() {
  Kept<CommunicatorMade*> all{};
  for (Made* made = first_made(Class::comm); made != nullptr; made = made->next) {
    all.add(static_cast<CommunicatorMade*>(made));
  }
  must(make_hidden(), "a duplicate of MPI_COMM_WORLD");
  uint64_t world = 0;
  inside(index_MPI_Comm_group, real_for_mpi(), &world);
  if (all.count != 0) qsort(all.all, all.count, sizeof all[0], by_number);
  for (CommunicatorMade* made : all) {
    made->real = make(world, *made);
    ask_for_group(made->real);  // the program may have done so in the old MPI
    furnish(*made, made->real);
  }
  free_group(world);
  all.clear();
}

}  // namespace backstay::mpi
