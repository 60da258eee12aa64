// How a memory file leaves memory: the program's descriptors get the real ones.
#pragma once

#include "capture/files/table.h"

namespace backstay::files {

// While other threads may be writing: waits for those that are, and lets none begin until it ends.
//
// The kernel refuses their writes with EPERM, and the interposed calls try again once the lock is
// free (descriptor_calls.cc). Streams would not: their own locks are taken first, so that no thread
// is inside of one. A thread that holds the lock of a stream and waits for ours is not waited for.
class StoppedWriters {
 public:
  StoppedWriters(Table& table, MemoryFile& file);
  ~StoppedWriters();
  StoppedWriters(const StoppedWriters&) = delete;
  StoppedWriters& operator=(const StoppedWriters&) = delete;

 private:
  static constexpr int streams_max = 64;  // of one file
  std::FILE* streams_[streams_max];
  int count_ = 0;
};

// Under StoppedWriters, where the file has to stay in memory after all. Returns an error number.
int let_writers_go_on(Table& table, MemoryFile& file);

// Whether the number still leads to the memory file. A close by the kernel's call alone (libuv, Go)
// is not seen, and the kernel gives the number to whatever is opened next.
bool leads_to(int fd, const MemoryFile& file);

// The program's descriptors now lead to the file at its place, or to what `placed` leads to. The
// file is taken out of the table.
void switch_over(Table& table, MemoryFile& file, int placed);

// Closes what is ours of a file whose descriptors have all ended, and takes it out of the table.
void drop_opening(Table& table, Opening& opening);

}  // namespace backstay::files
