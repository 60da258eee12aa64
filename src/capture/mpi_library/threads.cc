#include "capture/mpi_library/threads.h"

#include "capture/mpi_library/attend.h"
#include "capture/mpi_library/call.h"

namespace backstay::mpi {

bool is_shared = false;
uint32_t own_row = 0;

namespace {

constexpr int spins_max = 100;

uint64_t holder = 0;  // FS base of the thread that has the lock; 0: none has
uint32_t depth = 0;   // how often it has taken it
uint64_t last = 0;    // the one that had it last
uint32_t waiting = 0;

// Of each row: its thread, also after that has left MPI, and in how many calls it is. A thread gets
// the row again that it had. So what it said of itself there in a cut ends with its next call.
struct Row {
  uint64_t thread;
  uint32_t calls;
};
Row row_of[lower::threads_max];
uint32_t rows = 1;  // that were ever used

bool is_holder(uint64_t mine) { return __atomic_load_n(&holder, __ATOMIC_RELAXED) == mine; }

bool try_lock(uint64_t mine) {
  uint64_t none = 0;
  if (__atomic_load_n(&holder, __ATOMIC_RELAXED) != 0) return false;
  return __atomic_compare_exchange_n(&holder, &none, mine, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

void wait_for_lock(uint64_t mine) {
  __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
  for (int spins = 0; !try_lock(mine); ++spins) {
    if (spins < spins_max) {
      __builtin_ia32_pause();
    } else {
      yield();
    }
  }
  __atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
}

// Nobody has the lock for long, so nobody sleeps for it. A thread that calls MPI in a loop would
// always be the first to get it again, so it lets those that wait go first.
void lock(uint64_t mine) {
  if (last == mine && __atomic_load_n(&waiting, __ATOMIC_RELAXED) != 0) yield();
  if (!try_lock(mine)) wait_for_lock(mine);
  last = mine;
  depth = 1;
}

void unlock() {
  depth = 0;
  __atomic_store_n(&holder, 0, __ATOMIC_RELEASE);
}

// In each new process the channel is all zeros.
void show_rows() {
  lower::Channel& channel = lower::channel();
  if (channel.more_callers < rows - 1) {
    __atomic_store_n(&channel.more_callers, rows - 1, __ATOMIC_RELEASE);
  }
}

// `threads_max`: none is free.
uint32_t find_row(uint64_t mine) {
  uint32_t free = lower::threads_max;
  for (uint32_t i = 0; i < rows; ++i) {
    if (row_of[i].thread == mine) return i;
    if (free == lower::threads_max && row_of[i].calls == 0) free = i;
  }
  if (free == lower::threads_max && rows < lower::threads_max) free = rows++;
  return free;
}

void leave_lock(uint64_t mine) {
  unlock();
  yield();
  lock(mine);
}

}  // namespace

void begin_sharing() {
  holder = own_fs();
  depth = 1;
  own_row = 0;
  row_of[0] = {holder, 1};
  is_shared = true;
}

lower::Caller& join() {
  const uint64_t mine = own_fs();
  if (is_holder(mine)) {
    ++depth;
  } else {
    lock(mine);
    while ((own_row = find_row(mine)) == lower::threads_max) leave_lock(mine);
    row_of[own_row].thread = mine;
    show_rows();
  }
  ++row_of[own_row].calls;
  return lower::channel().caller[own_row];
}

// A thread that leaves while no cut is under way has nothing more to say.
void part() {
  lower::Caller& caller = lower::channel().caller[own_row];
  if (--row_of[own_row].calls == 0 && !is_asked()) caller.situation = 0;
  if (--depth == 0) unlock();
}

void give_way() {
  const Unlocked others;
  yield();
}

bool is_outermost() { return depth == 1; }

Unlocked::Unlocked() : is_unlocked_(may_unlock()), row_(own_row) {
  if (is_unlocked_) unlock();
}

Unlocked::~Unlocked() {
  if (!is_unlocked_) return;
  lock(own_fs());
  own_row = row_;
  show_rows();
}

Undivided::Undivided() { ++depth; }
Undivided::~Undivided() { --depth; }

Locked::Locked() {
  if (!is_shared || is_holder(own_fs())) return;
  lock(own_fs());
  is_taken_ = true;
}

Locked::~Locked() {
  if (is_taken_) unlock();
}

// Its own row does not change as long as it is in a call.
uint64_t outer_fs() {
  const uint64_t mine = own_fs();
  if (is_holder(mine)) return 0;
  for (uint32_t i = 0; i < rows; ++i) {
    if (row_of[i].thread == mine && row_of[i].calls != 0) return lower::table().lent[i].fs;
  }
  return 0;
}

uint64_t borrow_fs() {
  lower::Table& table = lower::table();
  lower::Lent& lent = table.lent[own_row];
  if (lent.fs == 0) {
    table.upper_fs = own_fs();
    table.do_job(table.lend, reinterpret_cast<void*>(static_cast<uint64_t>(own_row)));
  }
  lent.upper_fs = own_fs();
  return lent.fs;
}

}  // namespace backstay::mpi
