// Slots: what a handle that was made while the program runs stands for. Memory of the program, so
// an image holds them; a restart renews the real handles.
//
// One thread of the program is in MPI at a time (MPI_THREAD_SERIALIZED), so nothing is locked.
#pragma once

#include <stdint.h>

namespace backstay::mpi {

// The numbers are MPICH's for what a handle is. Messages are requests there.
enum class Class : uint32_t {
  comm = 1,
  group = 2,
  datatype = 3,
  file = 4,
  errhandler = 5,
  op = 6,
  info = 7,
  win = 8,
  request = 11,
  message = 12,
  session = 14,
};

struct Slot {
  uint64_t real;  // first: a handle of Open MPI's ABI points here
  uint32_t type;  // Class; 0: free
  uint32_t next;  // where free: the next free one
};

// Says why, a sentence without its full stop, in a line of standard error.
[[noreturn]] void end_program(const char* why);

inline constexpr uint32_t slots_max = 1 << 22;
extern Slot slots[slots_max];

// Never null: the process ends where there are no more.
Slot* take_slot(Class type, uint64_t real);
void give_back(Slot* slot);
// The slot of a real handle, null where there is none. It looks at all: for callbacks only.
Slot* find_slot(Class type, uint64_t real);
// All slots that were ever taken lie before this one.
uint32_t slots_end();

}  // namespace backstay::mpi
