#include "tier/ring_shelf.h"

namespace backstay::tier {

static constexpr std::size_t idle_max = 4;

Result<std::unique_ptr<io::Ring>> RingShelf::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto ring = std::move(idle_.back());
      idle_.pop_back();
      return ring;
    }
  }
  return make_ring_();
}

void RingShelf::put_back(std::unique_ptr<io::Ring> ring) {
  BACKSTAY_CHECK(ring->in_flight() == 0);
  if (ring->broken() || ring->stopgap()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < idle_max) idle_.push_back(std::move(ring));
}

Result<BorrowedRing> BorrowedRing::from(std::shared_ptr<RingShelf> shelf) {
  BACKSTAY_ASSIGN(auto ring, shelf->take());
  return BorrowedRing(std::move(shelf), std::move(ring));
}

BorrowedRing::~BorrowedRing() {
  if (ring_ == nullptr) return;
  while (ring_->in_flight() > 0) (void)ring_->reap(true);
  shelf_->put_back(std::move(ring_));
}

}  // namespace backstay::tier
