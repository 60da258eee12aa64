#include "capture/image/boot/mutexes.h"

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
  uint64_t neighbours[2];  // in the thread's list of robust mutexes
};
static_assert(sizeof(Mutex) == 40);
constexpr uint32_t kind_mask = 3;
constexpr uint32_t kind_recursive = 1;
constexpr uint32_t kind_checking = 2;
constexpr uint32_t robust = 16;
constexpr uint32_t inherits = 32;
constexpr uint32_t kind_known = kind_mask | robust | inherits | 64 | 128 | 256 | 512;
constexpr uint32_t lock_owner = 0x3fffffff;    // FUTEX_TID_MASK
constexpr uint32_t inconsistent = 0x7fffffff;  // in the owner's place: the one before has ended

// The kernel knows the owner by the lock's word, too.
bool lock_knows(const Mutex& mutex) { return (mutex.kind & (robust | inherits)) != 0; }

uint32_t owner_of(const Mutex& mutex) {
  return lock_knows(mutex) ? mutex.lock & lock_owner : mutex.owner;
}

// A held mutex that knows its owner.
bool is_held(const Mutex& mutex) {
  const bool knows = lock_knows(mutex);
  const uint32_t kind = mutex.kind & kind_mask;
  if ((mutex.kind & ~kind_known) != 0 || mutex.users == 0 || mutex.users > threads_max)
    return false;
  if (!knows && kind != kind_recursive && kind != kind_checking) return false;
  if (!knows && (mutex.spins | mutex.neighbours[0] | mutex.neighbours[1]) != 0) return false;
  // glibc counts the first lock of these, whatever the type.
  if (kind == kind_recursive ? mutex.count == 0 : mutex.count != (knows ? 1 : 0)) return false;
  return knows ? mutex.owner == owner_of(mutex) || mutex.owner == inconsistent
               : mutex.lock == 1 || mutex.lock == 2;
}

// pthread_rwlock_t of glibc on x86-64. An unlock takes the lock for one of a reader where the id is
// not that of the writer.
struct ReadWriteLock {
  uint32_t readers;  // and three flags
  uint32_t writers;  // that wait, and a flag
  uint32_t phase, writers_futex, zeros[2];
  uint32_t writer;
  uint32_t shared;
  uint64_t more_zeros[2];
  uint32_t preference;
  uint32_t padding;
};
static_assert(sizeof(ReadWriteLock) == 56);
constexpr uint32_t held_for_writing = 3;  // the phase is that of a writer, who has it
constexpr uint32_t flags = 7;
constexpr uint32_t handed_over = 0x80000000;
constexpr uint32_t is_waited_for = 2;
constexpr uint32_t is_taken = 1;  // both futexes, from before the writer's id is there to its end
constexpr uint32_t preferences = 3;

// The fields before the writer's id alone also fit the end of one chunk of malloc and the size of
// the next one.
bool is_held(const ReadWriteLock& lock) {
  const uint64_t zeros = lock.zeros[0] | lock.zeros[1] | lock.more_zeros[0] | lock.more_zeros[1];
  return (lock.readers & held_for_writing) == held_for_writing &&
         lock.readers / (flags + 1) <= threads_max &&
         (lock.writers & ~handed_over) <= threads_max &&
         (lock.phase & ~is_waited_for) == is_taken &&
         (lock.writers_futex & ~is_waited_for) == is_taken && lock.shared <= 1 &&
         lock.preference < preferences && zeros == 0;
}

void renew(Mutex& mutex, const NewIds& ids) {
  const uint32_t before = owner_of(mutex);
  if (!ids.holds(before) || !is_held(mutex)) return;
  const uint32_t now = ids.renewed(before);
  if (mutex.owner == before) mutex.owner = now;
  if (lock_knows(mutex)) mutex.lock = (mutex.lock & ~lock_owner) | now;
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

bool may_be_known_lock(uint64_t at) {
  const auto& mutex = *reinterpret_cast<const Mutex*>(at);
  return (mutex.kind & ~kind_known) == 0 && lock_knows(mutex);
}

bool is_known_lock(uint64_t at, const NewIds& ids) {
  const auto& mutex = *reinterpret_cast<const Mutex*>(at);
  const auto is_owner = [&](uint32_t id) { return id == 0 || ids.holds(id); };
  return may_be_known_lock(at) && mutex.users <= threads_max && is_owner(mutex.lock & lock_owner) &&
         (is_owner(mutex.owner) || mutex.owner == inconsistent);
}

void renew_lock_under_way(uint64_t at, uint32_t owner, const NewIds& ids) {
  auto& mutex = *reinterpret_cast<Mutex*>(at);
  if (!may_be_known_lock(at) || owner_of(mutex) != owner || is_held(mutex)) return;
  if (mutex.owner == owner) mutex.owner = ids.renewed(owner);
  mutex.lock = (mutex.lock & ~lock_owner) | ids.renewed(owner);
}

void renew_locks(const LockRange& range, const NewIds& ids) {
  for (uint64_t at = range.start; at < range.end; at += 8) {
    const uint64_t left = range.readable_end - at;
    if (left < sizeof(Mutex)) return;
    renew(*reinterpret_cast<Mutex*>(at), ids);
    if (left < sizeof(ReadWriteLock)) continue;
    auto* lock = reinterpret_cast<ReadWriteLock*>(at);
    if (ids.holds(lock->writer) && is_held(*lock)) lock->writer = ids.renewed(lock->writer);
  }
}

}  // namespace backstay::image
