// Memory of an agent for other agents' files: a fixed number of buffers, so that neither a
// neighbour nor a long queue makes the agent grow, and none of them is taken from the ranks' pool.
//
// A user leases a buffer; it is free again when the last copy of the lease is gone. Any
// thread. Leases may outlive the StagingBuffers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/aligned_memory.h"

namespace backstay::agent {

using Lease = std::shared_ptr<AlignedMemory>;

class StagingBuffers {
 public:
  // Memory is touched when it is used for the first time.
  StagingBuffers(std::uint32_t count, std::uint32_t buffer_bytes)
      : count_(count), buffer_bytes_(buffer_bytes), shelf_(std::make_shared<Shelf>()) {
    for (std::uint32_t index = 0; index < count; ++index) {
      shelf_->free.push_back(std::make_unique<AlignedMemory>(buffer_bytes));
    }
  }

  // Null where none is free.
  Lease take() {
    const std::lock_guard lock(shelf_->mutex);
    if (shelf_->free.empty()) return nullptr;
    auto memory = std::move(shelf_->free.back());
    shelf_->free.pop_back();
    return {memory.release(), [shelf = shelf_](AlignedMemory* back) {
              const std::lock_guard give_back(shelf->mutex);
              shelf->free.emplace_back(back);
            }};
  }

  std::uint32_t count() const { return count_; }
  std::uint32_t buffer_bytes() const { return buffer_bytes_; }
  std::size_t free_count() const {
    const std::lock_guard lock(shelf_->mutex);
    return shelf_->free.size();
  }

 private:
  struct Shelf {
    std::mutex mutex;  // guards free
    std::vector<std::unique_ptr<AlignedMemory>> free;
  };
  const std::uint32_t count_;
  const std::uint32_t buffer_bytes_;
  const std::shared_ptr<Shelf> shelf_;
};

// Limits one user's share of the buffers, so that two users cannot deadlock. take() in one thread;
// its leases end in any, and may outlive it.
class BufferQuota {
 public:
  // `buffers` must live longer.
  BufferQuota(StagingBuffers& buffers, std::uint32_t most) : buffers_(buffers), most_(most) {}

  // Null where none is free, or the share is used up.
  Lease take() {
    if (*taken_ >= most_) return nullptr;
    Lease lease = buffers_.take();
    if (!lease) return nullptr;
    ++*taken_;
    AlignedMemory* const memory = lease.get();
    return {memory, [lease = std::move(lease), taken = taken_](AlignedMemory*) { --*taken; }};
  }

 private:
  StagingBuffers& buffers_;
  const std::uint32_t most_;
  const std::shared_ptr<std::atomic<std::uint32_t>> taken_ =
      std::make_shared<std::atomic<std::uint32_t>>(0);
};

}  // namespace backstay::agent
