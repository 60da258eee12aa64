#include "capture/mpi_library/counters.h"

#include <stdlib.h>
#include <string.h>

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/chunks.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

using Handle = abi::Handle<Class::comm>;

constexpr uint64_t world_number = 1;

Chunks<Communicator> by_slot;
Communicator of_world;
Communicator of_self;
Communicator* first = nullptr;
lower::PeerCounts* counts = nullptr;
int own_rank = 0;
uint32_t rows = 0;
const char* refusal = nullptr;

// Its inputs are the same at all members, and differ from those of every other communicator.
uint64_t mix(uint64_t number, uint64_t word) {
  uint64_t mixed = (number ^ word) + 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

uint32_t take_row() {
  for (uint32_t i = 0; i < rows; ++i) {
    if (lower::channel().clock[i].number == 0) return i;
  }
  if (rows == lower::communicators_max) {
    refuse("it has more than 65536 communicators at once");
    return rows - 1;
  }
  lower::channel().communicators = rows + 1;
  return rows++;
}

void show(const Communicator& one) {
  if (one.number == 0) return;
  lower::channel().clock[one.row].begun = one.begun;
  __atomic_store_n(&lower::channel().clock[one.row].number, one.number, __ATOMIC_RELEASE);
}

void add(Communicator& one) {
  one.begun = 0;
  if (one.size < 2) one.number = 0;
  if (one.number != 0) one.row = take_row();
  one.next = first;
  first = &one;
  show(one);
}

// The members' ranks in MPI_COMM_WORLD; the least of them, or -1.
int learn_members(const Communicator& parent, uint64_t real_parent, uint64_t real,
                  Communicator& made) {
  uint64_t of_parent = 0;
  uint64_t of_made = 0;
  inside(index_MPI_Comm_size, real, &made.size);
  auto* own = static_cast<int*>(malloc(static_cast<size_t>(made.size) * sizeof(int)));
  made.world = static_cast<int*>(malloc(static_cast<size_t>(made.size) * sizeof(int)));
  if (own == nullptr || made.world == nullptr) abort();
  for (int i = 0; i < made.size; ++i) own[i] = i;
  inside(index_MPI_Comm_group, real_parent, &of_parent);
  inside(index_MPI_Comm_group, real, &of_made);
  inside(index_MPI_Group_translate_ranks, of_made, made.size, own, of_parent, made.world);
  inside(index_MPI_Group_free, &of_parent);
  inside(index_MPI_Group_free, &of_made);
  free(own);
  int least = -1;
  for (int i = 0; i < made.size; ++i) {
    made.world[i] = parent.world_rank(made.world[i]);
    if (least < 0 || made.world[i] < least) least = made.world[i];
  }
  return least;
}

}  // namespace

Communicator* communicator_of(Handle handle) {
  if (Slot* slot = abi::slot_of<Class::comm>(handle)) {
    Communicator* found = by_slot.find(slot);
    return found != nullptr && found->size > 0 ? found : nullptr;
  }
  if (abi::is_world(handle)) return of_world.size > 0 ? &of_world : nullptr;
  return abi::is_self(handle) && of_self.size > 0 ? &of_self : nullptr;
}

Communicator* first_communicator() { return first; }
lower::PeerCounts* peers() { return counts; }
int world_size() { return of_world.size; }

void count_made(Handle parent, Handle made) {
  const Communicator* from = communicator_of(parent);
  Slot* slot = abi::slot_of<Class::comm>(made);
  if (slot == nullptr) return;  // MPI_COMM_NULL
  const uint64_t real = abi::real<Class::comm>(made);
  int inter = 0;
  inside(index_MPI_Comm_test_inter, real, &inter);
  if (from == nullptr || inter != 0) return refuse("it has made an inter-communicator");
  Communicator& one = by_slot.at(slot);
  one.handle = made;
  const int least = learn_members(*from, abi::real<Class::comm>(parent), real, one);
  one.number = mix(mix(from->number, from->begun), static_cast<uint64_t>(least));
  add(one);
}

void count_freed(Handle handle) {
  Communicator* one = communicator_of(handle);
  if (one == nullptr) return;
  Communicator** at = &first;
  while (*at != one) at = &(*at)->next;
  *at = one->next;
  if (one->number != 0) {
    __atomic_store_n(&lower::channel().clock[one->row].number, 0, __ATOMIC_RELEASE);
  }
  free(one->world);
  *one = Communicator{};
}

void begin_counting() {
  int size = 0;
  inside(index_MPI_Comm_size, abi::known(abi::Known::world), &size);
  inside(index_MPI_Comm_rank, abi::known(abi::Known::world), &own_rank);
  if (static_cast<uint64_t>(size) > lower::peers_max) return refuse("it has too many ranks");
  counts =
      static_cast<lower::PeerCounts*>(calloc(static_cast<size_t>(size), sizeof(lower::PeerCounts)));
  auto* self = static_cast<int*>(malloc(sizeof(int)));
  if (counts == nullptr || self == nullptr) abort();
  *self = own_rank;
  of_world.handle = abi::predefined<Class::comm>(abi::known(abi::Known::world));
  of_world.number = world_number;
  of_world.size = size;
  of_self.handle = abi::predefined<Class::comm>(abi::known(abi::Known::self));
  of_self.size = 1;
  of_self.world = self;
  add(of_self);
  add(of_world);
  register_barrier();
  renew_counters();
}

void end_counting() {
  lower::channel().has_ended = 1;
  __atomic_store_n(&lower::channel().ranks, 0, __ATOMIC_RELEASE);
}

void renew_counters() {
  lower::Channel& channel = lower::channel();
  if (of_world.size == 0) return;
  for (const Communicator* one = first; one != nullptr; one = one->next) show(*one);
  memcpy(lower::peers_in(channel), counts, static_cast<size_t>(of_world.size) * sizeof *counts);
  channel.communicators = rows;
  channel.rank = static_cast<uint32_t>(own_rank);
  if (refusal != nullptr) refuse(refusal);
  __atomic_store_n(&channel.ranks, static_cast<uint32_t>(of_world.size), __ATOMIC_RELEASE);
}

void refuse(const char* why) {
  lower::Channel& channel = lower::channel();
  refusal = why;
  if (channel.refuses != 0) return;
  strncpy(channel.why, why, sizeof channel.why - 1);
  __atomic_store_n(&channel.refuses, 1, __ATOMIC_RELEASE);
}

}  // namespace backstay::mpi
