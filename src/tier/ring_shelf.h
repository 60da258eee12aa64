// Rings that wait for their next reader or writer: making one costs, most of all pinning the pool.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "io/ring.h"
#include "tier/dir.h"

namespace backstay::tier {

// Any thread.
class RingShelf {
 public:
  explicit RingShelf(MakeRing make_ring) : make_ring_(std::move(make_ring)) {}
  Result<std::unique_ptr<io::Ring>> take();
  // Nothing may be in flight. A broken ring or a stopgap is destroyed: the next reader or writer
  // gets another one.
  void put_back(std::unique_ptr<io::Ring> ring);

 private:
  const MakeRing make_ring_;
  std::mutex mutex_;  // guards idle_; not held while a ring is made or destroyed
  std::vector<std::unique_ptr<io::Ring>> idle_;
};

// A ring borrowed from a shelf. The destructor waits for what is in flight and puts it back.
class BorrowedRing {
 public:
  static Result<BorrowedRing> from(std::shared_ptr<RingShelf> shelf);
  BorrowedRing(BorrowedRing&&) = default;
  BorrowedRing& operator=(BorrowedRing&&) = delete;
  ~BorrowedRing();
  io::Ring& operator*() const { return *ring_; }
  io::Ring* operator->() const { return ring_.get(); }

 private:
  BorrowedRing(std::shared_ptr<RingShelf> shelf, std::unique_ptr<io::Ring> ring)
      : shelf_(std::move(shelf)), ring_(std::move(ring)) {}
  std::shared_ptr<RingShelf> shelf_;
  std::unique_ptr<io::Ring> ring_;
};

}  // namespace backstay::tier
