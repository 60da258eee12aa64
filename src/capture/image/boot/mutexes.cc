#include "capture/image/boot/mutexes.h"

#include <linux/mman.h>

namespace backstay::image {

namespace {

// pthread_mutex_t of glibc on x86-64.
struct Mutex {
  uint32_t lock;
  uint32_t count;
  uint32_t owner;
  uint32_t users;
  uint32_t kind;
  uint32_t spins;
};
constexpr uint32_t kind_mask = 3;
constexpr uint32_t kind_recursive = 1;
constexpr uint32_t kind_checking = 2;
constexpr uint32_t robust = 16;
constexpr uint32_t inherits = 32;
constexpr uint32_t kind_known = kind_mask | robust | inherits | 64 | 128 | 256 | 512;
constexpr uint32_t lock_owner = 0x3fffffff;  // FUTEX_TID_MASK

// A held mutex that knows its owner. Four fields must fit, so that data is not taken for one.
bool is_held(const Mutex& mutex) {
  const bool knows = (mutex.kind & (robust | inherits)) != 0;
  const uint32_t kind = mutex.kind & kind_mask;
  if ((mutex.kind & ~kind_known) != 0 || mutex.users == 0 || mutex.users > threads_max)
    return false;
  if (!knows && kind != kind_recursive && kind != kind_checking) return false;
  if (kind == kind_recursive ? mutex.count == 0 : mutex.count != 0) return false;
  return knows ? (mutex.lock & lock_owner) == mutex.owner : mutex.lock == 1 || mutex.lock == 2;
}

// pthread_rwlock_t of glibc on x86-64. An unlock takes the lock for one of a reader where the id is
// not that of the writer.
struct ReadWriteLock {
  uint32_t readers;  // and three flags
  uint32_t writers;  // that wait, and a flag
  uint32_t phase, writers_futex, zeros[2];
  uint32_t writer;
  uint32_t shared;
};
constexpr uint32_t held_for_writing = 3;  // the phase is that of a writer, who has it
constexpr uint32_t flags = 7;
constexpr uint32_t handed_over = 0x80000000;
constexpr uint32_t is_waited_for = 2;

bool is_held(const ReadWriteLock& lock) {
  return (lock.readers & held_for_writing) == held_for_writing &&
         lock.readers / (flags + 1) <= threads_max &&
         (lock.writers & ~handed_over) <= threads_max && (lock.phase & ~is_waited_for) <= 1 &&
         (lock.writers_futex & ~is_waited_for) <= 1 && lock.zeros[0] == 0 && lock.zeros[1] == 0 &&
         lock.shared <= 1;
}

void renew(Mutex& mutex, const NewIds& ids) {
  if (!ids.holds(mutex.owner) || !is_held(mutex)) return;
  mutex.owner = ids.renewed(mutex.owner);
  if ((mutex.kind & (robust | inherits)) != 0) {
    mutex.lock = (mutex.lock & ~lock_owner) | mutex.owner;
  }
}

}  // namespace

void NewIds::add(uint32_t before, uint32_t now) {
  if (count_ == threads_max + 1) return;
  pairs_[count_++] = Pair{before, now};
  if (before < least_) least_ = before;
  if (before > greatest_) greatest_ = before;
}

bool NewIds::holds(uint32_t before) const {
  if (before < least_ || before > greatest_) return false;
  for (uint32_t i = 0; i < count_; ++i) {
    if (pairs_[i].before == before) return true;
  }
  return false;
}

uint32_t NewIds::renewed(uint32_t before) const {
  for (uint32_t i = 0; i < count_; ++i) {
    if (pairs_[i].before == before) return pairs_[i].now;
  }
  return before;
}

bool is_writable(const Tables& tables, const Run& run) {
  for (const Area& area : tables.areas) {
    if (run.address >= area.start && run.address < area.end) {
      return (area.protection & PROT_WRITE) != 0 && (area.flags & area_is_content) == 0;
    }
  }
  return false;
}

void renew_locks(uint64_t address, uint64_t bytes, const NewIds& ids) {
  for (uint64_t at = address; at + sizeof(Mutex) <= address + bytes; at += 8) {
    renew(*reinterpret_cast<Mutex*>(at), ids);
    if (at + sizeof(ReadWriteLock) > address + bytes) continue;
    auto* lock = reinterpret_cast<ReadWriteLock*>(at);
    if (ids.holds(lock->writer) && is_held(*lock)) lock->writer = ids.renewed(lock->writer);
  }
}

}  // namespace backstay::image
