// What the program's MPI library, the boot program and the companion tell each other about cuts and
// restarts: memory at a fixed address of the window, which no image holds
// (docs/protocol/lower-half.md, "Cuts").
//
// The boot program maps it before a program starts, where it was given a lower half; it is all
// zeros then, and again in each process that an image was brought back into. `--channel FD` makes
// it the memory of a file, which the companion maps too.
//
// One thread of the program is in our library at a time, and it alone writes what is the library's.
// Each thread that is in MPI has a row of its own in `caller`; a program that is not given
// MPI_THREAD_MULTIPLE has the first row. A counter is written before `calls`, so whoever finds
// `calls` 0 in each row finds counters that belong together.
#pragma once

#include <stdint.h>

#include "capture/lower/table.h"

namespace backstay::lower {

inline constexpr uint64_t channel_place = 0x4a5ec0000000;
inline constexpr uint64_t channel_bytes_max = 256 << 20;

// Why the library shall look up before its next call into the real MPI: bits of `attention`.
inline constexpr uint32_t attend_cut = 1;    // a cut is under way (docs/protocol/cut.md)
inline constexpr uint32_t attend_renew = 2;  // the process is another one: its handles are stale

// From the companion, while `attention` says cut.
enum class CutOrder : uint32_t {
  none = 0,
  run_on = 1,  // collective calls need a permission; all else goes on
  stop = 2,    // stand, and take in the messages that arrive
  close = 3,   // take in none
};
// From the library, while `attention` says cut.
enum class Situation : uint32_t {
  none = 0,    // outside, or in a call that began before the cut
  runs = 1,    // it goes on; it has heard of the cut
  wants = 2,   // held before a collective call: `wish`
  waits = 3,   // for the messages in `awaited`
  stands = 4,  // it has heard "stop"
  closed = 5,  // it has heard "close", and sleeps
};

struct CommunicatorClock {
  uint64_t number;  // 0: free
  uint64_t begun;   // collective calls
};
// Messages from and to one rank of MPI_COMM_WORLD, since the program's start.
struct PeerCounts {
  uint64_t sent;
  uint64_t taken_in;  // have left MPI, for the program or for the store
  uint64_t taken;     // the program itself has received them
};

inline constexpr uint32_t awaited_max = 64;
inline constexpr uint32_t awaited_any = 0xffffffff;
inline constexpr uint32_t communicators_max = 65536;

// One thread of the program that is in MPI.
struct alignas(64) Caller {
  // How many calls into the real MPI it is in; more than one: in a callback. The library counts
  // it; whoever has stopped the thread may read it.
  uint32_t calls;
  uint32_t in_collective;  // it is in a blocking collective call
  uint32_t situation;      // Situation
  uint32_t wish_number;    // of the wish, raised with each
  uint64_t wish;           // the communicator on which it wants to begin a collective call
  uint32_t granted;        // from the companion: the number of the last wish that was granted
  uint32_t awaited_count;
  uint32_t awaited[awaited_max];
};

struct Channel {
  uint32_t version;
  uint32_t attention;  // set by the boot program's control thread and by the companion

  // --- from the library
  uint32_t ranks;  // of MPI_COMM_WORLD. 0: before MPI_Init, and behind MPI_Finalize
  uint32_t rank;
  uint32_t has_ended;         // MPI_Finalize was called
  uint32_t open_collectives;  // that were begun without blocking and are not known to be complete
  uint32_t refuses;           // the program cannot be saved, and `why` says why: another number
                              // with each reason; 0: it can, or the reason is being changed
  uint32_t communicators;     // rows of `clock` that were ever used
  uint32_t told;              // a futex, shared: raised where the library has news during a cut
  uint32_t more_callers;      // rows of `caller` that were ever used, beside the first one
  char why[256];

  // --- from the companion
  alignas(64) uint32_t order;  // CutOrder; a futex, shared
  uint32_t said;               // a futex, shared: raised with each order and each permission

  Caller caller[threads_max];
  alignas(64) CommunicatorClock clock[communicators_max];
  // Behind it: PeerCounts of each rank of MPI_COMM_WORLD.
};
inline constexpr uint64_t peers_max = (channel_bytes_max - sizeof(Channel)) / sizeof(PeerCounts);
static_assert(sizeof(Channel) < channel_bytes_max);

inline PeerCounts* peers_in(Channel& channel) {
  return reinterpret_cast<PeerCounts*>(&channel + 1);
}

// The rows that may be in use.
inline uint32_t callers_in(const Channel& channel) {
  const uint32_t more = __atomic_load_n(&channel.more_callers, __ATOMIC_ACQUIRE);
  return more < threads_max ? 1 + more : threads_max;
}

// No thread of the program is in a call.
inline bool is_outside(const Channel& channel) {
  const uint32_t count = callers_in(channel);
  for (uint32_t i = 0; i < count; ++i) {
    if (__atomic_load_n(&channel.caller[i].calls, __ATOMIC_ACQUIRE) != 0) return false;
  }
  return true;
}

inline Channel& channel() { return *reinterpret_cast<Channel*>(channel_place); }

}  // namespace backstay::lower
