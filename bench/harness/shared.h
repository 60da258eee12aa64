// Memory that a parent shares with the processes it forks, and a barrier in it.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace backstay::bench {

// Anonymous memory, `shared` with processes forked later or private; every page has been touched.
// Ends the program where there is not enough.
std::byte* map_touched(std::size_t bytes, bool shared);

// The same, private, aligned and in huge pages where the system has them: a disk request from
// scattered 4 KiB pages is split and slower, and a limit must be the best that can be had.
std::byte* map_touched_huge(std::size_t bytes);

// One T in shared memory, for the life of the program.
template <typename T>
T* make_shared_object() {
  return new (map_touched(sizeof(T), true)) T();
}

// A barrier over processes that sleeps (futex); it never spins.
class SharedBarrier {
 public:
  void init(unsigned parties);
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

std::int64_t now_ns();  // CLOCK_MONOTONIC, the same clock in all processes

}  // namespace backstay::bench
