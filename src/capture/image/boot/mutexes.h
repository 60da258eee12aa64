// Thread ids in memory. A restart gives threads new ids; glibc keeps a thread's id in its own
// block, in each mutex that is held and checks its owner (recursive, error-checking, robust, with
// priority inheritance), and in each read-write lock that is held for writing: with the old id
// there, the owner could not unlock it any more.
#pragma once

#include "capture/image/boot/stop.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

class NewIds {
 public:
  void add(uint32_t before, uint32_t now);
  bool holds(uint32_t before) const;
  uint32_t renewed(uint32_t before) const;  // itself where it is not known

 private:
  struct Pair {
    uint32_t before, now;
  };
  Pair pairs_[threads_max + 1] = {};
  uint32_t count_ = 0;
  uint32_t least_ = ~0U, greatest_ = 0;
};

// Where locks may begin, and up to where memory can be read.
struct LockRange {
  uint64_t start = 0, end = 0, readable_end = 0;
};

// Whether a mutex is there whose owner the kernel knows, too: by its kind alone.
bool may_be_known_lock(uint64_t at);
// By all its fields: free, held, or about to be either. False where a thread of another process has
// it. Before the first owner is renewed.
bool is_known_lock(uint64_t at, const NewIds& ids);

// Renews the owner of such a mutex where the kernel has it already, or still, and libc's fields do
// not. Before renew_locks(), which passes over these.
void renew_lock_under_way(uint64_t at, uint32_t owner, const NewIds& ids);

// Renews the owner of each lock of glibc that is held by one of the old ids and begins in this
// range. Nothing tells where locks lie, and data of the program may look like a lock. So only what
// has the values of a held lock in all its fields counts as one.
void renew_locks(const LockRange& range, const NewIds& ids);

}  // namespace backstay::image
