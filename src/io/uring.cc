// How a request lives:
//  1. write() or read() takes a free slot, prepares an entry and hands it to the kernel.
//  2. The kernel's answer goes through advance() (transfer.h): complete, failed, or prepared again
//     for the rest.
//  3. reap() returns the finished ones. It sleeps in the kernel if it may wait.
// If the kernel takes no entry now (EAGAIN, EBUSY), the entry stays prepared and the next reap()
// tries again. If the kernel refuses for good, all entries that it has not taken fail, and so do
// all later requests.
#include "io/uring.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "io/transfer.h"

namespace backstay::io {

namespace {

constexpr std::size_t piece_bytes_max = std::size_t{1} << 30;  // the kernel's limit for one buffer
constexpr unsigned refusals_max = 5000;                        // of a millisecond each

struct Slot {
  Transfer transfer;
  std::byte* address = nullptr;
  int fd = -1;
  std::uint64_t tag = 0;
};

bool has_operations(io_uring* ring) {
  io_uring_probe* probe = ::io_uring_get_probe_ring(ring);
  if (probe == nullptr) return false;
  bool all = true;
  for (const int op :
       {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED}) {
    all = all && ::io_uring_opcode_supported(probe, op) != 0;
  }
  ::io_uring_free_probe(probe);
  return all;
}

class UringRing final : public Ring {
 public:
  explicit UringRing(unsigned depth) : depth_(depth), slots_(depth) {
    for (unsigned i = 0; i < depth; ++i) free_.push_back(i);
  }

  Status start() {
    const int answer = ::io_uring_queue_init(depth_, &ring_, 0);
    if (answer < 0) {
      return Error(Code::unsupported, errno_error("io_uring is refused", -answer).message(),
                   -answer);
    }
    started_ = true;
    if (has_operations(&ring_)) return {};
    return Error(Code::unsupported, "this kernel's io_uring is too old");
  }

  Status register_memory(const std::vector<std::span<std::byte>>& regions) {
    for (std::span<std::byte> left : regions) {
      while (!left.empty()) {
        const std::size_t bytes = std::min(left.size(), piece_bytes_max);
        pieces_.push_back({left.data(), bytes});
        left = left.subspan(bytes);
      }
    }
    const int answer =
        ::io_uring_register_buffers(&ring_, pieces_.data(), static_cast<unsigned>(pieces_.size()));
    if (answer == 0) return {};
    pieces_.clear();
    return errno_error("buffers cannot be pinned (limit: ulimit -l)", -answer);
  }

  ~UringRing() override {
    if (!started_) return;
    while (in_flight_ > 0) (void)reap(true);
    ::io_uring_queue_exit(&ring_);
  }

  unsigned depth() const override { return depth_; }
  unsigned in_flight() const override { return in_flight_; }

  void write(File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) override {
    // The kernel only reads from it; the type of an entry does not say so.
    start_request(file, Direction::write, offset, const_cast<std::byte*>(from.data()), from.size(),
                  tag);
  }
  void read(File& file, std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override {
    start_request(file, Direction::read, offset, to.data(), to.size(), tag);
  }

  bool broken() const override { return broken_ != 0; }

  std::vector<Completion> reap(bool wait) override {
    std::vector<Completion> completed;
    for (;;) {
      collect();
      submit();
      completed.swap(finished_);
      in_flight_ -= static_cast<unsigned>(completed.size());
      if (!completed.empty() || !wait || in_flight_ == 0) return completed;
      if (in_kernel_ > 0) {
        wait_for_one();
      } else {
        pause_a_millisecond();  // the kernel takes nothing now and owes us nothing
      }
    }
  }

 private:
  void start_request(File& file, Direction direction, std::uint64_t offset, std::byte* address,
                     std::size_t bytes, std::uint64_t tag) {
    BACKSTAY_CHECK(in_flight_ < depth_);
    BACKSTAY_CHECK(file.descriptor() >= 0);
    ++in_flight_;
    if (bytes == 0) return finished_.push_back({tag, {}});
    const unsigned index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot = {{direction, file.direct(), offset, bytes}, address, file.descriptor(), tag};
    prepare(index);
    submit();
  }

  // The registered piece that holds all of the slot's next part, or -1.
  int piece_of(const Slot& slot) const {
    const std::byte* first = slot.address + slot.transfer.done;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto* base = static_cast<const std::byte*>(pieces_[i].iov_base);
      if (first < base || first >= base + pieces_[i].iov_len) continue;
      const auto room = static_cast<std::size_t>(base + pieces_[i].iov_len - first);
      return slot.transfer.next_bytes() <= room ? static_cast<int>(i) : -1;
    }
    return -1;
  }

  void prepare(unsigned index) {
    if (broken_ != 0) return finish(index, errno_error("io_uring", broken_));
    const Slot& slot = slots_[index];
    // There is an entry for each slot, and a slot is prepared at most once at a time.
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    BACKSTAY_CHECK(entry != nullptr);
    void* address = slot.address + slot.transfer.done;
    const std::uint32_t bytes = slot.transfer.next_bytes();
    const int piece = piece_of(slot);
    const bool read = slot.transfer.direction == Direction::read;
    if (read && piece >= 0) {
      ::io_uring_prep_read_fixed(entry, slot.fd, address, bytes, slot.transfer.at(), piece);
    } else if (read) {
      ::io_uring_prep_read(entry, slot.fd, address, bytes, slot.transfer.at());
    } else if (piece >= 0) {
      ::io_uring_prep_write_fixed(entry, slot.fd, address, bytes, slot.transfer.at(), piece);
    } else {
      ::io_uring_prep_write(entry, slot.fd, address, bytes, slot.transfer.at());
    }
    ::io_uring_sqe_set_data64(entry, index);
    prepared_.push_back(index);
  }

  void submit() {
    while (!prepared_.empty() && broken_ == 0) {
      const int taken = ::io_uring_submit(&ring_);
      if (taken == -EINTR) continue;
      if (taken == -EAGAIN || taken == -EBUSY || taken == 0) {
        if (++refusals_ >= refusals_max) give_up(EAGAIN);
        return;
      }
      if (taken < 0) return give_up(-taken);
      refusals_ = 0;
      in_kernel_ += static_cast<unsigned>(taken);
      prepared_.erase(prepared_.begin(), prepared_.begin() + taken);
    }
  }

  void give_up(int sys_errno) {
    broken_ = sys_errno;
    for (const unsigned index : prepared_) finish(index, errno_error("io_uring", sys_errno));
    prepared_.clear();
  }

  void wait_for_one() {
    io_uring_cqe* answer = nullptr;
    const int waited = ::io_uring_wait_cqe(&ring_, &answer);
    // Anything else would mean that the ring itself is gone while the kernel uses our memory.
    BACKSTAY_CHECK(waited == 0 || waited == -EINTR || waited == -EAGAIN);
  }

  void collect() {
    io_uring_cqe* answer = nullptr;
    while (in_kernel_ > 0 && ::io_uring_peek_cqe(&ring_, &answer) == 0) {
      const auto index = static_cast<unsigned>(::io_uring_cqe_get_data64(answer));
      const int moved = answer->res;
      ::io_uring_cqe_seen(&ring_, answer);
      --in_kernel_;
      take_answer(index, moved);
    }
  }

  void take_answer(unsigned index, int moved) {
    Transfer& transfer = slots_[index].transfer;
    const Result<bool> complete = advance(transfer, moved);
    if (!complete.ok()) return finish(index, complete.error());
    if (*complete) return finish(index, {});
    if (transfer.should_pause()) pause_a_millisecond();
    prepare(index);
  }

  void finish(unsigned index, Status status) {
    finished_.push_back({slots_[index].tag, std::move(status)});
    free_.push_back(index);
  }

  const unsigned depth_;
  io_uring ring_{};
  bool started_ = false;
  int broken_ = 0;          // errno of the refusal for good
  unsigned refusals_ = 0;   // in a row
  unsigned in_flight_ = 0;  // submitted to us, not reaped
  unsigned in_kernel_ = 0;  // entries that the kernel will answer
  std::vector<Slot> slots_;
  std::vector<unsigned> free_;
  std::deque<unsigned> prepared_;  // entries that the kernel has not taken, in their order
  std::vector<Completion> finished_;
  std::vector<iovec> pieces_;
};

}  // namespace

Result<std::unique_ptr<Ring>> make_uring(const RingOptions& options, RingKind* kind) {
  auto ring = std::make_unique<UringRing>(options.depth);
  BACKSTAY_TRY(ring->start());
  RingKind found{true, false, {}};
  if (!options.registered.empty()) {
    const Status pinned = ring->register_memory(options.registered);
    found.registered_buffers = pinned.ok();
    if (!pinned.ok()) found.why_not = pinned.error().message();
  }
  if (kind != nullptr) *kind = found;
  return std::unique_ptr<Ring>(std::move(ring));
}

}  // namespace backstay::io
