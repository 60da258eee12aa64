#include "capture/mpi_library/counters.h"

#include <stdlib.h>
#include <string.h>

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/chunks.h"
#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/hidden.h"
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

void add(Communicator& one, int members) {
  one.begun = 0;
  if (members < 2) one.number = 0;
  if (one.number != 0) one.row = take_row();
  one.next = first;
  first = &one;
  show(one);
}

int count_of(const Members& members) {
  int count = 0;
  for (const Run& run : members.runs) count += length(run);
  return count;
}

// Those to whom messages go: of two groups the other one.
void learn_peers(const CommunicatorMade& of, Communicator& made) {
  const Kept<int> ranks = ranks_of(of.is_inter ? of.remote : of.local);
  made.size = static_cast<int>(ranks.count);
  made.world = ranks.all;
}

void drop(Communicator& one) {
  Communicator** at = &first;
  while (*at != &one) at = &(*at)->next;
  *at = one.next;
  if (one.number != 0) {
    __atomic_store_n(&lower::channel().clock[one.row].number, 0, __ATOMIC_RELEASE);
  }
  keep_for_requests(one);
  free(one.world);
  one = Communicator{};
}

}  // namespace

Communicator* communicator_of(Handle handle) {
  if (Slot* slot = abi::slot_of<Class::comm>(handle)) {
    Communicator* found = by_slot.find(slot);
    return found != nullptr && found->size > 0 ? found : nullptr;
  }
  const uint64_t real = abi::real<Class::comm>(handle);
  if (real == abi::world()) return of_world.size > 0 ? &of_world : nullptr;
  return real == abi::self() && of_self.size > 0 ? &of_self : nullptr;
}

Communicator* first_communicator() { return first; }
lower::PeerCounts* peers() { return counts; }
int world_size() { return of_world.size; }
int own_world_rank() { return own_rank; }

void count_made(Handle handle) {
  const CommunicatorMade* made = communicator(handle);
  if (made->is_foreign()) {
    return refuse("it has connected to processes beside its own");
  }
  Communicator& one = by_slot.at(abi::slot_of<Class::comm>(handle));
  one.handle = handle;
  learn_peers(*made, one);
  one.number = made->number;
  add(one, count_of(made->local) + count_of(made->remote));
}

void count_freed(Handle handle) {
  Communicator* one = communicator_of(handle);
  if (one != nullptr) drop(*one);
}

Communicator& count_expected(const Slot* slot, uint64_t number, int members) {
  Communicator& one = by_slot.at(slot);
  one.number = number;
  add(one, members);
  return one;
}

void count_expected_made(Handle handle) {
  Communicator& one = by_slot.at(abi::slot_of<Class::comm>(handle));
  one.handle = handle;
  learn_peers(*communicator(handle), one);
}

void count_expected_failed(const Slot* slot) { drop(by_slot.at(slot)); }

void begin_counting() {
  int size = 0;
  inside(index_MPI_Comm_size, abi::world(), &size);
  inside(index_MPI_Comm_rank, abi::world(), &own_rank);
  if (static_cast<uint64_t>(size) > lower::peers_max) return refuse("it has too many ranks");
  counts =
      static_cast<lower::PeerCounts*>(calloc(static_cast<size_t>(size), sizeof(lower::PeerCounts)));
  auto* self = static_cast<int*>(malloc(sizeof(int)));
  if (counts == nullptr || self == nullptr) abort();
  *self = own_rank;
  of_world.handle = abi::predefined<Class::comm>(abi::world());
  of_world.number = communicator(of_world.handle)->number;
  of_world.size = size;
  of_self.handle = abi::predefined<Class::comm>(abi::self());
  of_self.size = 1;
  of_self.world = self;
  add(of_self, 1);
  add(of_world, size);
  if (make_hidden() != 0) return refuse("MPI has not made a duplicate of MPI_COMM_WORLD");
  Communicator& of_hidden = by_slot.at(&slots[0]);
  of_hidden.handle = hidden();
  of_hidden.size = size;
  add(of_hidden, 1);
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
