// The thread of a rank that writes for its group: what its buffers hold goes to the file while the
// program computes. It calls no MPI.
//
// One version at a time: begin(), then for each piece buffer() and filled(), then end(). The part
// is finished some time after that; wait() waits for it. A part that failed takes no more bytes:
// buffers come back unwritten, so that nobody waits for room that never comes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "strategy/file_per_process.h"

namespace backstay::strategy {

class WriterThread {
 public:
  // `failed` is called in it for each part that fails. Errors are thrown: std::system_error,
  // std::bad_alloc.
  using TellFailure = std::function<void(VersionNumber version, const Error& why)>;
  WriterThread(const Config& config, TellFailure failed);
  // Waits for what is in flight; a part that has not ended is given up.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  std::uint32_t piece_bytes() const { return buffers_.piece_bytes(); }
  // Precondition: wait() has returned, or nothing was begun.
  void begin(std::unique_ptr<store::PartWriter> part, std::uint64_t bytes);
  // A buffer that is free. Blocks until there is one.
  std::size_t buffer();
  std::span<std::byte> memory(std::size_t buffer) const { return buffers_.at(buffer); }
  // A chunk whose memory is that buffer.
  void filled(std::size_t buffer, const store::NewChunk& chunk);
  void end(store::PartEnd end);
  // The part is given up.
  void give_up(const Error& why);

  // Until the last part is finished, or has failed. `report` gets what it holds, and times.
  Status wait(RankReport& report);
  // The same without waiting: ok also of one that is on its way.
  Status so_far();

 private:
  struct Filled {
    std::size_t buffer;
    store::NewChunk chunk;
  };
  void run();
  void write_all(std::unique_lock<std::mutex>& lock);
  void take_in(bool wait, std::unique_lock<std::mutex>& lock);

  const Buffers buffers_;
  const TellFailure tell_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;  // any of what follows
  std::unique_ptr<store::PartWriter> part_;
  std::uint64_t bytes_ = 0;  // a guess
  std::deque<Filled> filled_;
  std::deque<std::size_t> idle_;
  std::optional<store::PartEnd> end_;
  std::optional<Status> outcome_;  // of the last part
  std::optional<Error> failed_;    // of the present one
  RankReport times_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace backstay::strategy
