// What the library counts in each call (docs/protocol/cut.md, "Counting"): collective calls by
// communicator, messages by rank of MPI_COMM_WORLD. The program's memory holds the counters, so an
// image has them; each change is written through to the channel, where the companion reads it.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/call.h"
#include "capture/mpi_library/refusals.h"

namespace backstay::mpi {

struct Communicator {
  uint64_t number;  // of its descriptor; 0: no clock, as it has one member, or is the hidden one
  uint64_t begun;
  Communicator* next;  // of all that the program has
  abi::Handle<Class::comm> handle;
  uint32_t row;      // in the channel
  int size;          // of the group that messages go to. 0: none is here, or it is being made
  uint32_t kept_by;  // requests, of one that the program has freed (requests.h)
  int* world;        // rank in that group to rank of MPI_COMM_WORLD. Null: they are the same
  int world_rank(int rank) const { return world != nullptr ? world[rank] : rank; }
};

// Whether messages may go to this rank.
inline bool has_member(const Communicator* in, int rank) {
  return in != nullptr && rank >= 0 && rank < in->size;
}

// Null: not known (a wrong handle, or processes of another MPI_COMM_WORLD): MPI itself says so.
Communicator* communicator_of(abi::Handle<Class::comm> handle);
Communicator* first_communicator();

// Behind the call that has given it, at all members; it has a descriptor. Both in a call that is
// counted.
void count_made(abi::Handle<Class::comm> handle);
// Before it is freed.
void count_freed(abi::Handle<Class::comm> handle);
// Of one that its members make alone, before the call: from here on it has a clock, and the call is
// the first one on it. `members`: how many it will have. Then one of the next two.
Communicator& count_expected(const Slot* slot, uint64_t number, int members);
void count_expected_made(abi::Handle<Class::comm> handle);
void count_expected_failed(const Slot* slot);

// Behind MPI_Init, in each process's life; behind MPI_Finalize.
void begin_counting();
void end_counting();
// In another process: writes all counters into its channel.
void renew_counters();

lower::PeerCounts* peers();  // by rank of MPI_COMM_WORLD
int world_size();
int own_world_rank();

template <auto Count>
void count_message(const Communicator* in, int peer) {
  if (!has_member(in, peer)) return;
  const int world = in->world_rank(peer);
  lower::peers_in(lower::channel())[world].*Count = ++(peers()[world].*Count);
}
inline constexpr auto count_sent = count_message<&lower::PeerCounts::sent>;
inline constexpr auto count_taken_in = count_message<&lower::PeerCounts::taken_in>;
inline constexpr auto count_taken = count_message<&lower::PeerCounts::taken>;

// A collective call, blocking or not: counted, and in a cut begun only with the companion's
// permission. Lives as long as the real call.
class Collective {
 public:
  explicit Collective(abi::Handle<Class::comm> handle) : of_(communicator_of(handle)) { begin(); }
  explicit Collective(Communicator* of) : of_(of) { begin(); }
  ~Collective() {
    if (!nested_) set_inside(0);
    leave();
  }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

 private:
  static void set_inside(uint32_t inside) {
    *const_cast<volatile uint32_t*>(&own_caller().in_collective) = inside;
  }
  // Counted first, and then `attention` is read: see call.h. It is read before that as well: in a
  // cut the companion does not see a clock that is raised and then lowered again.
  void begin() {
    volatile uint32_t& calls = caller_in().calls;
    calls = calls + 1;
    nested_ = calls > 1;
    __asm__ volatile("" : : : "memory");
    if (of_ == nullptr || of_->number == 0 || nested_) {
      if (is_asked()) enter_asked();
      return;
    }
    if (is_asked()) return begin_asked(false);
    set_inside(1);
    count();
    __asm__ volatile("" : : : "memory");
    if (is_asked()) begin_asked(true);
  }
  void count() { lower::channel().clock[of_->row].begun = ++of_->begun; }
  [[gnu::cold]] void begin_asked(bool is_counted);  // attend.cc

  Communicator* of_;
  bool nested_ = false;
};

}  // namespace backstay::mpi
