// A Ring of threads that run File's blocking calls: for machines that refuse io_uring.
//
// The queue lives on the heap inside the ring and nothing is static, so that a process may exit
// while a ring exists. The threads take no signals: those belong to the program.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/quiet_thread.h"
#include "io/blocking_request.h"
#include "io/posix.h"

namespace backstay::io {

namespace {

class ThreadRing final : public Ring {
 public:
  explicit ThreadRing(unsigned depth) : depth_(depth) {}

  // Errors: io. What was started is ended by the destructor.
  Status start(unsigned threads) try {
    for (unsigned i = 0; i < threads; ++i) threads_.push_back(quiet_thread([this] { run(); }));
    return {};
  } catch (const std::system_error& error) {
    return errno_error("start a thread for reading and writing", error.code().value());
  }

  ~ThreadRing() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();  // each leaves when the queue is empty
  }

  unsigned depth() const override { return depth_; }
  unsigned in_flight() const override { return in_flight_; }

  void write(File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) override {
    submit({&file, offset, from, {}, false, tag});
  }
  void read(File& file, std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override {
    submit({&file, offset, {}, to, true, tag});
  }

  std::vector<Completion> reap(bool wait) override {
    std::vector<Completion> completed;
    std::unique_lock lock(mutex_);
    if (wait && in_flight_ > 0) complete_.wait(lock, [this] { return !completed_.empty(); });
    completed.swap(completed_);
    in_flight_ -= static_cast<unsigned>(completed.size());
    return completed;
  }

 private:
  void submit(BlockingRequest request) {
    BACKSTAY_CHECK(in_flight_ < depth_);
    ++in_flight_;
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(request);
    }
    work_.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const BlockingRequest request = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      Status status = request.carry_out();
      lock.lock();
      completed_.push_back({request.tag, std::move(status)});
      complete_.notify_one();
    }
  }

  const unsigned depth_;
  unsigned in_flight_ = 0;  // the owner's thread only
  std::mutex mutex_;        // guards everything below
  std::condition_variable work_;
  std::condition_variable complete_;
  std::deque<BlockingRequest> waiting_;
  std::vector<Completion> completed_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Ring>> make_thread_ring(unsigned depth, unsigned threads) {
  BACKSTAY_CHECK(depth > 0 && threads > 0);
  auto ring = std::make_unique<ThreadRing>(depth);
  BACKSTAY_TRY(ring->start(threads));
  return std::unique_ptr<Ring>(std::move(ring));
}

}  // namespace backstay::io
