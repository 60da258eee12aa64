// The collector as commands and the mount see it: where it is, starting it, handing files over, and
// waiting for them. The library in the programs has its own way (capture/files/pool.h).
//
// Any thread; all functions block.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "capture/files/collect.h"
#include "client/start.h"

namespace backstay::files {

// Of the job `job` beside the agent with this address.
std::string collector_socket(const client::AgentAddress& agent, const std::string& job);

// Starts a program of ours as a daemon, as the agent is started, and waits until it has said its
// last word on stderr. ok: it said none, so it works. Errors: agent_lost (its words), timeout.
Status start_daemon(const std::string& program, const std::vector<std::string>& arguments);

// Starts a collector where none listens, and says that this process, which becomes a program, may
// ask it later. Blocks until what a collector before it has left is at its place. `tell`: lines for
// people. Errors: agent_lost (it cannot be started; its own words), timeout.
Status ensure_collector(const std::string& socket, const std::string& program,
                        const std::function<void(const std::string&)>& tell);

// A finished file: descriptors and what the file at its place was like when it was opened.
struct Handed {
  int memory = -1;
  int target = -1;
  struct stat opened = {};
  Until until = Until::captured;
  std::uint64_t synced = 0;  // the version of its last sync; 0: there was none
};
// Hands a file over. ok: it will come to its place, whatever becomes of this process. Errors: the
// caller brings it there; timeout: the collector is silent, and the next question would be too.
Status keep(const std::string& socket, const std::string& program, const Handed& file);

// A descriptor with the lock of a new hold beside this socket; invalid where none can be made.
Fd make_hold(const std::string& socket);
// Blocks until what the open file has so far is local, and returns the version that has it. It is
// not brought to its place while this process has the hold. Errors: as of keep.
Result<VersionNumber> sync(const std::string& socket, const std::string& program,
                           const Handed& file, int hold);
// The file of a sync is at its place by now, or is not wanted.
Status let_go(const std::string& socket, const std::string& program, VersionNumber synced);

// Blocks until the pending file whose placeholder has this device and inode is at its place. ok
// where none is pending. A collector that is gone or silent is followed by another one. Errors: io
// (why it cannot be brought there).
Status settle(const std::string& socket, const std::string& program, std::uint64_t device,
              std::uint64_t inode);

// A collector listens there, or one has left files that are pending.
bool may_have_files(const std::string& socket);

struct Fates {
  std::uint64_t captured = 0;  // files
  std::string words;           // how many bytes; where none was captured, why; "": none fits
};
// Asks what became of files that fit a pattern, since the last question. Errors: agent_lost (there
// is no collector).
Result<Fates> take_fates(const std::string& socket);

// Blocks until all files that are pending are at their places. `tell`: lines for people; `go_on`:
// asked each second, false ends the wait. ok where no collector listens and none has left anything.
// Errors: io (files are not at their places, they were told), again (the wait was ended).
Status settle_all(const std::string& socket, const std::string& program,
                  const std::function<void(const std::string&)>& tell,
                  const std::function<bool()>& go_on);

}  // namespace backstay::files
