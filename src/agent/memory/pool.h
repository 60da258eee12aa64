// The node's buffer pool: one memfd, cut into equal buffers, shared with every rank on the node.
//
// The pool only knows which buffers are free. Who uses a buffer otherwise (a rank that fills it,
// the store that writes it, a version that is kept for a fast restart) is the Job's knowledge. Not
// thread safe: belongs to the agent's main loop; other threads use the memory of buffers handed to
// them, and copy_out().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace backstay::agent {

// The buffers that a rank prefers: [first, first + count). It has touched their pages already, so
// that filling them causes no page faults.
struct HomeRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct PoolOptions {
  std::uint64_t bytes = 0;  // rounded down to whole buffers, at least two
  std::uint32_t buffer_bytes = 4u << 20;
  bool huge_pages = true;
};

class Pool {
 public:
  // Creates the memory and begins to touch its pages in a thread of its own (the first touch of
  // memory costs more than copying it). Errors: too_large (also more than is available now), io.
  static Result<std::unique_ptr<Pool>> create(const PoolOptions& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Whether all pages have been touched. Callers pin the memory only then: the kernel cannot join
  // pages that are pinned. Takes a second of processor time for 1 GiB; wait(false) blocks until
  // then. Any thread.
  const std::atomic<bool>& touched() const { return touched_; }

  int descriptor() const { return memory_fd_.get(); }
  std::uint64_t bytes() const { return std::uint64_t{count_} * buffer_bytes_; }
  std::uint32_t buffer_bytes() const { return buffer_bytes_; }
  std::uint32_t count() const { return count_; }
  std::uint32_t free_count() const { return free_count_; }
  bool huge_pages() const { return huge_; }
  std::span<std::byte> memory() const { return {base_, bytes()}; }
  std::span<std::byte> buffer(std::uint32_t index) const {
    return {base_ + std::uint64_t{index} * buffer_bytes_, buffer_bytes_};
  }

  std::uint32_t free_count_in(HomeRange home) const;
  HomeRange home_of(std::uint32_t local_rank, std::uint32_t local_ranks) const;

  // A free buffer out of `home`, else none.
  std::optional<std::uint32_t> take_from(HomeRange home);
  // Any free buffer, else none.
  std::optional<std::uint32_t> take();
  // Makes a taken buffer free. Giving back a free buffer is our bug (checked).
  void give_back(std::uint32_t index);

  // How often the buffer was given back. A reader that noted it sees later whether the buffer still
  // has what it had.
  std::uint64_t returns(std::uint32_t index) const { return returns_[index]; }
  // Copies `to.size()` bytes of a buffer from `offset` on. False: the buffer was given back after
  // `returns` was noted, and `to` holds garbage. Any thread.
  bool copy_out(std::uint32_t index, std::uint64_t returns, std::uint64_t offset,
                std::span<std::byte> to) const;

 private:
  enum class Pages { small, to_join, huge };
  Pool(Fd memory_fd, std::byte* base, std::uint32_t count, std::uint32_t buffer_bytes, Pages pages);
  std::optional<std::uint32_t> take_in(std::uint32_t first, std::uint32_t end);

  Fd memory_fd_;
  std::byte* base_;
  std::uint32_t count_;
  std::uint32_t buffer_bytes_;
  bool huge_;
  std::uint32_t free_count_;
  std::uint32_t cursor_ = 0;  // where take() looks first
  std::vector<bool> free_;
  // Guard returns_, each those with its remainder; the main loop, the only writer, reads without.
  mutable std::array<std::mutex, 16> giving_back_;
  std::vector<std::uint64_t> returns_;
  std::atomic<bool> touched_ = false;
  std::jthread toucher_;
};

}  // namespace backstay::agent
