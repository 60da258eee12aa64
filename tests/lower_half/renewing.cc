// What a test's MPI library has beside the product's: a call that renews all handles in the running
// MPI, and counts of what is alive. Programs of the tests find it by name, so natively they run
// without.
#include <stdlib.h>

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/hidden.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

struct Old {
  Made* made;
  uint64_t real;
};

constexpr Class classes[] = {Class::group, Class::datatype,   Class::info,
                             Class::op,    Class::errhandler, Class::comm};

uint32_t free_of(Class type) {
  switch (type) {
    case Class::group: return index_MPI_Group_free;
    case Class::datatype: return index_MPI_Type_free;
    case Class::info: return index_MPI_Info_free;
    case Class::op: return index_MPI_Op_free;
    case Class::errhandler: return index_MPI_Errhandler_free;
    default: return index_MPI_Comm_free;
  }
}

// In the order of the numbers, as they are freed by all members.
int by_number(const void* a, const void* b) {
  return compare(static_cast<CommunicatorMade*>(static_cast<const Old*>(a)->made)->number,
                 static_cast<CommunicatorMade*>(static_cast<const Old*>(b)->made)->number);
}

Kept<Old> all_of(Class type) {
  Kept<Old> all{};
  for (Made* made = first_made(type); made != nullptr; made = made->next) {
    // A datatype that the program has freed lives on where another one is built on it.
    const bool lives_on = type == Class::datatype && made->real != 0;
    if (made->handles != 0 || lives_on) all.add({made, made->real});
  }
  if (type == Class::comm && all.count != 0) qsort(all.all, all.count, sizeof(Old), by_number);
  return all;
}

bool stays(Class type, uint64_t real) {
  return (type == Class::group && abi::is_predefined<Class::group>(real)) ||
         (type == Class::comm && abi::is_predefined<Class::comm>(real));
}

}  // namespace

extern "C" {

// Collective. How many real handles are what they were: of types that MPI caches, and the empty
// group.
int backstay_test_renew() {
  Kept<Old> old[6];
  for (int i = 0; i < 6; ++i) old[i] = all_of(classes[i]);
  const InCall in_call;
  uint64_t hidden[] = {slots[0].real, real_for_mpi()};
  renew_handles();
  for (uint64_t& one : hidden) inside(index_MPI_Comm_free, &one);
  int same = 0;
  for (int i = 0; i < 6; ++i) {
    for (Old& one : old[i]) {
      const bool is_same = one.made->real == one.real;
      same += is_same ? 1 : 0;
      if (!is_same && !stays(classes[i], one.real)) inside(free_of(classes[i]), &one.real);
    }
    old[i].clear();
  }
  return same;
}

// Handles of the program, and descriptors.
int backstay_test_alive() {
  int alive = 0;
  for (uint32_t i = 1; i < slots_end(); ++i) alive += slots[i].type != 0 ? 1 : 0;
  for (uint32_t type = 1; type < 16; ++type) {
    for (Made* made = first_made(static_cast<Class>(type)); made != nullptr; made = made->next) {
      ++alive;
    }
  }
  return alive;
}

const char* backstay_test_why() { return why_not_renewable(); }

}  // extern "C"

}  // namespace backstay::mpi
