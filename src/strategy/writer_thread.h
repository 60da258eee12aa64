// The thread of a rank that writes: what its buffers hold goes to the file while they are filled,
// and while the program computes. It calls no MPI.
//
// One version at a time: begin(), expect(), take() for each piece, end() in any case; then the part
// is finished, and wait() waits for that. A part that failed takes no more bytes: buffers come back
// unwritten, so that take() does not wait for room that never comes. A failure is also marked in
// the version's folder, for those who wait for the version; not once the manifest is there, as the
// version may be recorded then.
//
// The thread begins to write when all buffers are full or all pieces were taken. An earlier start
// would hold up the ranks that hand over.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "strategy/writer_group.h"

namespace backstay::strategy {

class WriterThread {
 public:
  // Throws std::bad_alloc.
  explicit WriterThread(const Ranks& ranks);
  // Waits for the part; one that has not ended is given up.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  // Precondition: wait() has returned since the last begin(). Throws std::system_error.
  void begin(const store::VersionInfo& info);
  // The objects that the part will hold.
  void expect(store::PartEnd part);
  // Blocks until a buffer is free. Errors: those of `fill`.
  Status take(const Chunk& chunk, const Fill& fill);
  // All pieces were taken; or they are not what they should be.
  void end(const Status& taken);

  // `report` gets the times.
  Status wait(RankReport& report);
  // The same without waiting: ok also of one that is on its way.
  Status so_far();

 private:
  struct Filled {
    std::size_t buffer;
    store::NewChunk chunk;
  };
  void run(const store::VersionInfo& info);
  void write_all(store::PartWriter& part);
  bool is_hungry();
  std::optional<Filled> next();
  void take_back(std::size_t buffer);
  void reap(store::PartWriter& part, bool wait);

  const Ranks ranks_;
  const Buffers buffers_;
  std::mutex mutex_;
  std::condition_variable changed_;  // any of what follows
  std::deque<Filled> filled_;
  std::deque<std::size_t> idle_;
  store::PartEnd expected_;
  std::optional<Status> ended_;  // end() was called
  bool writes_ = false;          // the buffers were full, or all pieces were taken
  Status outcome_;
  RankReport report_;  // the thread's, until it has ended
  std::thread thread_;
};

}  // namespace backstay::strategy
