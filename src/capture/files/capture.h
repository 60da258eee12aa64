// Memory files as a program uses them: opened, closed, brought to their place. What the interposed
// calls have in common.
//
// Two ways lead out of memory, and both put the real descriptors in the places of the old ones,
// with their offsets and flags:
// - bring_home: the file is finished as far as anyone can see (sync, exec, exit, rename). It goes
//   through the sink.
// - make_real: something is about to happen that memory files cannot do (docs/guide/files.md lists
//   it). The bytes go into the file at its place as if it had been open natively all the time.
//
// All functions return error numbers, 0 for success. They may be called in signal handlers. Those
// that say so want the lock held.
#pragma once

#include <sys/stat.h>

#include "capture/files/lock.h"
#include "capture/files/table.h"

namespace backstay::files {

Table& table();

// Whether this process may use the table: not a child of vfork or clone, which has the table of its
// parent in its memory.
bool is_owner();
// The opening that this descriptor of the program leads to; null if it is not of a memory file. A
// close that passed by the library ends here, late. The lock is not held.
Opening* opening_of(int fd);
// The real descriptor behind one of a memory file; others as they are.
int place_of(int fd);
// Before the program gets this number once more. The lock is held.
void end_unseen(int fd);
// Whether there may be a memory file at all: the quick answer that most calls need.
bool is_anything_captured();

// As openat. Makes a memory file, joins one, or opens natively. Returns a descriptor or -1 and
// errno.
int open_file(int folder, const char* path, int flags, mode_t mode);

// The descriptor is about to be closed. With it may end the file, which then goes to the sink.
int end_descriptor(int fd);  // lock held
// The program will end or become another one.
int bring_all_home();
int make_all_real();  // lock held

int bring_home(MemoryFile& file, bool sync);  // lock held; the file is no longer in the table
int make_real(MemoryFile& file);              // lock held; the same, where it succeeds

// make_real for the file of a descriptor, where it is one.
int make_descriptor_real(int fd);
int make_locked_real(int fd);  // the same, where it is to be locked: that is counted
// The same for a path that leads to memory itself: /proc/self/fd/NUMBER.
int make_memory_real(int folder, const char* path);
// What was written so far survives a power cut: it is local, or at its place.
int sync_descriptor(int fd);
// bring_home for the file of a descriptor, synced.
int place_descriptor(int fd);
// The memory file that a path leads to; null if none.
MemoryFile* file_at_path(int folder, const char* path, int flags);

// Before `bytes` are written: what would exceed the memory that is allowed goes to its place first.
void expect_write(int fd, unsigned long long bytes);

// Called at start, once: reads the settings.
void start_capture();
// The table is this process's from now on.
void take_ownership();
// In a child after fork: nothing that the parent had in memory is the child's.
void forget_all();

}  // namespace backstay::files
