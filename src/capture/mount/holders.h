// What /proc says of the process that closes a file. A kernel tells a FUSE daemon of each close of
// a descriptor, and not which one is the last.
//
// Any thread. Short reads of /proc; where it tells nothing (another namespace, a process that has
// ended) the answer is no.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace backstay::mount {

// Whether the process has a descriptor, open for writing, of a file with this inode number. May say
// yes for a file of another file system that has the same number.
bool holds_for_writing(pid_t process, std::uint64_t inode);

// Whether the process is being ended by a signal, SIGKILL among them: what it has open was not
// closed by the program.
bool dies_by_signal(pid_t process);

// For tests: of the text of /proc/PID/stat, and of /proc/PID/fdinfo/N.
bool tells_death_by_signal(const std::string& stat);
bool tells_writer_of(const std::string& fdinfo, std::uint64_t inode);

}  // namespace backstay::mount
