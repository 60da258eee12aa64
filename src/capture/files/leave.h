// How a memory file leaves memory: the program's descriptors get the real ones.
#pragma once

#include "capture/files/table.h"

namespace backstay::files {

// While other threads may be writing: waits for those that are, and lets none begin. They get EPERM
// from the kernel, and the interposed calls try again once the lock is free (write.cc).
void stop_writers(MemoryFile& file);
// After stop_writers, where the file has to stay in memory after all. Returns an error number.
int let_writers_go_on(Table& table, MemoryFile& file);

// The program's descriptors now lead to the file at its place, or to what `placed` leads to. The
// file is taken out of the table.
void switch_over(Table& table, MemoryFile& file, int placed);

// Closes what is ours of a file whose descriptors have all ended, and takes it out of the table.
void drop_opening(Table& table, Opening& opening);

}  // namespace backstay::files
