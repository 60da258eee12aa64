// One question to the collector (docs/protocol/collector.md): the library in the programs, the
// commands and the mount ask it by these functions, each over connections of its own making.
//
// All block, allocate nothing, and make system calls only: in signal handlers too, and in children
// of vfork.
#pragma once

#include "capture/files/collect.h"
#include "capture/files/sink.h"

namespace backstay::files {

enum class Way : std::uint32_t {
  answered,
  unasked,  // there is no collector
  gone,     // the collector went away before its answer
  silent,   // it is stopped, or hangs. `error`: 0, or it said nothing when it was started
  left,     // the asking side would not wait any more
};

struct Answered {
  Way way = Way::gone;
  int error = 0;  // the collector's; where it is gone, why the question could not be sent, or 0
  std::uint64_t version = 0;
  bool well() const { return way == Way::answered && error == 0; }
};

// The asking side.
struct Asker {
  // Returns a connection to a collector. Less than 0: there is none; -ETIMEDOUT: one that was
  // started says nothing.
  int (*connect)(Asker& asker);
  // Hears each answer but the last one. False ends the wait.
  bool (*hear)(Asker& asker, const Answer& answer);
  // A collector that is silent is killed, unless the question hands over files: no other may take
  // its place while it lives, and the agent has all that it has.
  bool ends_silent = true;
};

// `descriptors`: as many as handed_with() says.
Answered ask(Asker& asker, const Question& question, const int* descriptors = nullptr);
// The same, but the next collector is asked if one goes away or is killed, a few times.
Answered ask_in_turn(Asker& asker, const Question& question, const int* descriptors = nullptr);

// True: the collector may have this memory file. It has so many bytes, and no collector was silent
// within the last minute.
bool may_take(int memory, std::uint64_t bytes_min);
// Hands a file over: well() says that it will come to its place, whatever becomes of this process.
// `synced`: the version of its last sync; 0: there was none. After Way::gone the caller calls
// settle_taken().
Answered keep(Asker& asker, const Finished& finished, Until until, std::uint64_t synced);
// The agent may have the file from a collector that ended before its answer. It must not bring the
// file after the program has renamed or removed it.
Answered settle_taken(Asker& asker, const Finished& finished);
// Blocks until the version of the answer has what the open file has so far, and is local. It does
// not come to the file's place while this process has the hold.
Answered sync(Asker& asker, const Finished& finished, int hold);
// The file of a sync is at its place by now, or is not wanted.
Answered let_go(Asker& asker, std::uint64_t synced);
// Blocks until the pending file with this placeholder is at its place.
Answered settle(Asker& asker, std::uint64_t device, std::uint64_t inode, bool reads = false);

// A descriptor with the lock of a new hold in this folder, or minus an error number.
int make_hold(const char* folder);

}  // namespace backstay::files
