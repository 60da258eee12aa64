// Where the bytes of a memory file go when the program closes it, syncs it or ends.
//
// Two ways stand behind this: the collector takes the file (pool.h), or it is brought to its place
// at once, by the functions here. They are called by one thread at a time (in the library with the
// lock held), allocate nothing, and call no function of libc that is interposed. The collector uses
// them too, for files that the agent cannot bring.
#pragma once

#include <sys/stat.h>

#include "capture/files/pattern.h"

namespace backstay::files {

// A memory file as it is to be kept.
struct Finished {
  int memory = -1;  // holds the bytes: holes, size and times are those of the file
  int target = -1;  // the file at its place, open for writing; mode and owner are its own
  // Of the file at its place: when it was opened, or after our last try to write it, which failed.
  // What differs now was changed by others.
  struct stat opened = {};
  bool sync = false;  // return only when a power cut would not take it back
  // The caller goes on with the file: it wants the descriptor of what is at its place.
  bool goes_on = false;
};

// Where the file is now.
struct Kept {
  int error = 0;  // an error number: what close or fsync returns to the program
  // A new file has replaced the one at the target, and this descriptor (for reading and writing)
  // leads to it; -1: the target itself has the bytes, or the caller does not go on with the file.
  int placed = -1;
};

// Whether a new file under its name may take its place: it has one name, which is written to
// `path`, no other process has it open, and none has changed it. Not of an empty file that stays
// empty.
bool can_be_replaced(const Finished& finished, char (&path)[path_max]);

// Brings the file to its place: writes it under a temporary name beside it and renames, so that a
// crash leaves the old file or the new one. Where a rename would not do (another name, another
// process that has the file open, a folder that is closed to us, a disk that has no room for both)
// it writes into the file itself.
Kept keep_direct(Finished& finished);

// A whole copy in the folder of `path`, under a temporary name that is written to `name`: bytes,
// size, owner, mode and times. Its descriptor for reading and writing, or minus an error number.
int copy_beside(const Finished& finished, const char* path, char (&name)[path_max]);

// Whether both descriptors lead to one file.
bool is_same_file(int one, int other);

// Opens the file anew by its name and closes `fd`. Returns `fd` itself if `path` leads to another
// file, or if the mode forbids the open. A file that was made without a name keeps "#NUMBER
// (deleted)" as its name in /proc, also once it has one: can_be_replaced() does not find it by such
// a descriptor.
int open_by_name(int fd, const char* path);

// Writes into the file at its place, as the program would have: no crash leaves the old file.
// Returns an error number. Where the file system can reserve room, ENOSPC and EDQUOT are found
// before the first byte is written. After any error in writing the file is empty, unless another
// process has written into it too.
int write_in_place(Finished& finished);

}  // namespace backstay::files
