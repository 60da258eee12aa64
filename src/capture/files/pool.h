// The library's side of the collector (docs/protocol/collector.md): files go to it when they are
// finished, and come home before anything looks at them.
//
// No function here needs the lock or keeps anything in this process but the mapped page, so all may
// be called in signal handlers and in children of vfork. Without a collector each is one load.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "capture/files/sink.h"

namespace backstay::files {

// Called at start, once, after the settings were read.
void start_pool();

// Whether the collector has taken the file: it will come to its place. Else the caller brings it
// there. `synced`: the version of its last sync; 0: there was none. Lock held.
bool keep_in_pool(const Finished& finished, std::uint64_t synced);

// A descriptor with the lock of a new hold, or minus an error number.
int make_hold();
// Makes local what an open file has so far: returns the version, 0 where that cannot be done. The
// version is not brought to the file's place while this process has the hold.
std::uint64_t sync_in_pool(const Finished& finished, int hold);
// The file is at its place by now, or is not wanted: the version of its last sync is not either.
void let_go_in_pool(std::uint64_t synced);

// This process closes files past the library, so it will look at them past it too: from now on its
// files are at their places when they are closed.
void stay_out_of_pool();

// Whether a file may be pending at all: captured by some process of the job, and not at its place.
bool is_anything_pending();
// Whether this one is: what its path holds is the file from before.
bool is_pending(const struct stat& found);
// The same, for a call that only looks: not where a whole copy stands at the path.
bool is_awaited(const struct stat& found);

// Asks the collector to give the pending file `found` another name in its folder. no: nothing has
// changed. failed: the collector went away before it answered.
enum class Renamed { yes, no, failed };
Renamed rename_in_pool(const struct stat& found, const struct stat& folder, const char* name);

// Each returns 0, or EIO where the file could not be brought to its place: its path has the old
// bytes. `flags`: AT_SYMLINK_NOFOLLOW or 0. A folder stands for all files.
int settle_path(int folder, const char* path, int flags);
// The same, but for folders, which need nothing. `reads`: the caller only looks.
int settle_file(int folder, const char* path, int flags, bool reads = false);
int settle_found(const struct stat& found, bool reads = false);
void settle_all();
// At the end of the first process of a tree: waits for all files, and tells people about it. Of any
// other: hands over what it has counted.
void settle_at_end();
// Hands over what was counted and has not travelled with a question yet. This process ends, or
// becomes another program.
void note_at_end();

}  // namespace backstay::files
