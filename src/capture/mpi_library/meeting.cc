#include "capture/mpi_library/meeting.h"

#include "capture/mpi_library/hidden.h"

namespace backstay::mpi {

using Comm = abi::Handle<Class::comm>;
using Type = abi::Handle<Class::datatype>;

// As the program calls them: in a cut they hold, wait and take in.
extern "C" {
int PMPI_Send(void* buffer, int count, Type type, int to, int tag, Comm comm);
int PMPI_Recv(void* buffer, int count, Type type, int source, int tag, Comm comm, void* status);
int PMPI_Sendrecv(void* send_buffer, int send_count, Type send_type, int to, int send_tag,
                  void* buffer, int count, Type type, int source, int tag, Comm comm, void* status);
}

namespace {

abi::Status ignored;
Type bytes_type() { return abi::predefined<Class::datatype>(abi::byte()); }

void send(int to, int tag, void* bytes, int count) {
  PMPI_Send(bytes, count, bytes_type(), to, tag, hidden());
}
void receive(int from, int tag, void* bytes, int count) {
  PMPI_Recv(bytes, count, bytes_type(), from, tag, hidden(), &ignored);
}

// In a binomial tree a place's parent is the place without its lowest bit.
int parent_of(int place) { return place & (place - 1); }
int lowest_bit(int place) { return place & -place; }

}  // namespace

int Meeting::child(int turn) const {
  const int bit = 1 << turn;
  const bool is_own = place_ == 0 || bit < lowest_bit(place_);
  return is_own && bit < count_ - place_ ? place_ + bit : -1;
}

int Meeting::world_rank(int place) const {
  const int member = (place + root_) % count_;
  return world_ != nullptr ? world_[member] : member;
}

void Meeting::gather() {
  char here = 0;
  for (int turn = 0; child(turn) >= 0; ++turn) receive(world_rank(child(turn)), tag_, &here, 1);
  if (!is_root()) send(world_rank(parent_of(place_)), tag_, &here, 1);
}

void Meeting::hand_out(void* bytes, int count) {
  if (!is_root()) receive(world_rank(parent_of(place_)), tag_, bytes, count);
  for (int turn = 0; child(turn) >= 0; ++turn) send(world_rank(child(turn)), tag_, bytes, count);
}

void exchange(int world, int tag, void* given, int bytes_given, void* got, int bytes_got) {
  PMPI_Sendrecv(given, bytes_given, bytes_type(), world, tag, got, bytes_got, bytes_type(), world,
                tag, hidden(), &ignored);
}

}  // namespace backstay::mpi
