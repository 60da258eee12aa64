#include "capture/mpi_library/members.h"

#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

uint64_t world = 0;  // the real group of MPI_COMM_WORLD; 0: not asked for yet

uint64_t world_group() {
  if (world == 0) inside(index_MPI_Comm_group, abi::world(), &world);
  return world;
}

// A program that has begun with a session has none.
bool has_world() {
  int flag = 0;
  if (world == 0) inside(index_MPI_Initialized, &flag);
  return world != 0 || flag != 0;
}

// The longest run that begins at `ranks`.
Run run_at(const int* ranks, const int* end) {
  Run run{ranks[0], ranks[0], 1};
  if (ranks + 1 == end) return run;
  run.stride = ranks[1] - ranks[0];
  for (const int* one = ranks + 1; one != end && *one - run.last == run.stride; ++one) {
    run.last = *one;
  }
  return run;
}

}  // namespace

Kept<int> ranks_of(const Members& members) {
  Kept<int> ranks{};
  for (const Run& run : members.runs) {
    for (int i = 0; i < length(run); ++i) ranks.add(run.first + i * run.stride);
  }
  return ranks;
}

Members members_of(uint64_t real_group) {
  Members members{};
  members.is_foreign = !has_world();
  if (members.is_foreign) return members;
  int count = 0;
  inside(index_MPI_Group_size, real_group, &count);
  const auto bytes = static_cast<uint64_t>(count) * 2 * sizeof(int);
  auto* own = static_cast<int*>(malloc(bytes + 1));
  if (own == nullptr) abort();
  int* const ranks = own + count;
  for (int i = 0; i < count; ++i) own[i] = i;
  inside(index_MPI_Group_translate_ranks, real_group, count, own, world_group(), ranks);
  for (int i = 0; i < count && !members.is_foreign; ++i) {
    members.is_foreign = ranks[i] == abi::undefined;
  }
  for (int i = 0; i < count && !members.is_foreign;) {
    i += length(members.runs.add(run_at(ranks + i, ranks + count)));
  }
  free(own);
  return members;
}

uint64_t make_group(const Members& members, uint64_t out_of) {
  uint64_t real = 0;
  must(inside(index_MPI_Group_range_incl, out_of, static_cast<int>(members.runs.count),
              members.runs.all, &real),
       "a group");
  return real;
}

void free_group(uint64_t real_group) {
  if (!abi::is_predefined<Class::group>(real_group)) inside(index_MPI_Group_free, &real_group);
}

void ask_for_group(uint64_t real_comm) {
  uint64_t group = 0;
  inside(index_MPI_Comm_group, real_comm, &group);
  free_group(group);
}

void forget_world() { world = 0; }

Made* describe_group(uint64_t real) {
  auto* made = new_made<GroupMade>(Class::group, real);
  made->members = members_of(real);
  return made;
}

uint64_t renew_group(const Made* made) {
  return make_group(static_cast<const GroupMade*>(made)->members, world_group());
}

void clear_group(Made* made) { static_cast<GroupMade*>(made)->members.runs.clear(); }

}  // namespace backstay::mpi
