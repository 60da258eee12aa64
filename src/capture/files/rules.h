// Which files become memory files when a program opens them. Pure: docs/guide/files.md has the same
// rules in words. Whatever a rule does not allow is opened as if Backstay were not there.
#pragma once

#include <sys/stat.h>

namespace backstay::files {

bool flags_write(int flags);

// Whether an open with these flags may make a memory file: it writes, and it creates or truncates
// the file. O_APPEND is left out because several processes may share its end of file, O_SYNC and
// O_DIRECT because each write has to reach the disk.
bool flags_allow(int flags);

// What open found under the path.
struct Found {
  struct stat stat;
  bool ordinary_system = false;  // of a file system that holds files: not proc, sysfs, devices
  bool open_elsewhere = false;   // somebody else has it open, in this process or another one
};

// Whether this file may live in memory until it is closed. `flags` have passed flags_allow.
bool file_allows(const Found& found, int flags);

// Whether an open of a path that is a memory file of this process may join it; else the file is
// made real first.
bool flags_can_join(int flags);

// The part of the flags of open that a descriptor of the memory file takes over.
int memory_flags(int flags);

}  // namespace backstay::files
