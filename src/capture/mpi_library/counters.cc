#include "capture/mpi_library/counters.h"

#include <stdlib.h>
#include <string.h>

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/chunks.h"
#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/requests.h"

namespace backstay::mpi {

namespace {

using Handle = abi::Handle<Class::comm>;

Chunks<Communicator> by_slot;
Communicator of_world;
Communicator of_self;
Communicator* first = nullptr;
lower::PeerCounts* counts = nullptr;
int own_rank = 0;
uint32_t rows = 0;

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

void learn_members(const Members& members, Communicator& made) {
  for (const Run& run : members.runs) made.size += length(run);
  made.world = static_cast<int*>(malloc(static_cast<size_t>(made.size) * sizeof(int) + 1));
  if (made.world == nullptr) abort();
  int* at = made.world;
  for (const Run& run : members.runs) {
    for (int i = 0; i < length(run); ++i) *at++ = run.first + i * run.stride;
  }
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

void count_made(Handle handle) {
  const CommunicatorMade* made = communicator(handle);
  if (made->local.is_foreign || made->remote.is_foreign) {
    return refuse("it has connected to processes beside its own");
  }
  if (made->is_inter) return hold_back(Open::inter_communicator);
  Communicator& one = by_slot.at(abi::slot_of<Class::comm>(handle));
  one.handle = handle;
  learn_members(made->local, one);
  one.number = made->number;
  add(one);
}

void count_freed(Handle handle) {
  const CommunicatorMade* made = communicator(handle);
  if (made != nullptr && made->is_inter && !made->remote.is_foreign) {
    return let_go(Open::inter_communicator);
  }
  Communicator* one = communicator_of(handle);
  if (one == nullptr) return;
  Communicator** at = &first;
  while (*at != one) at = &(*at)->next;
  *at = one->next;
  if (one->number != 0) {
    __atomic_store_n(&lower::channel().clock[one->row].number, 0, __ATOMIC_RELEASE);
  }
  keep_for_requests(*one);
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
  of_world.number = communicator(of_world.handle)->number;
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
  renew_refusals();
  __atomic_store_n(&channel.ranks, static_cast<uint32_t>(of_world.size), __ATOMIC_RELEASE);
}

}  // namespace backstay::mpi
