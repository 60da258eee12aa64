// What the library does while a cut is under way (docs/protocol/cut.md): it tells the companion
// where the program is, holds it, and takes in what arrives. One thread of the program at a time.
#pragma once

#include <stdint.h>

namespace backstay::mpi {

// For whom the program waits, as ranks of MPI_COMM_WORLD; too many are "any".
class Awaited {
 public:
  void add(int world);
  void add_any();
  void publish() const;

 private:
  uint32_t count_ = 0;
  uint32_t peer_[64];
};

// One turn of a loop of tests, where is_asked(): in a call that is counted, with the program's FS
// base. It returns after a while, or when the program may go on.
void wait_turn(const Awaited& awaited);
// Such a loop has ended, or a call that only looks has found something.
void stop_waiting();
// A call that only looks has found nothing: who calls it in a loop waits as well.
void found_nothing(const Awaited& awaited);

// Once in each life of the process, before it counts.
void register_barrier();
// Lets others have the processor. A loop of it is no way to wait: each turn may cost a time slice.
void yield();
// Sleeps for a moment.
void rest();

}  // namespace backstay::mpi
