// The collector as commands and the mount see it: where it is, starting it, handing files over, and
// waiting for them. The library in the programs starts it in its own way (capture/files/pool.h).
//
// Any thread; all functions block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/ids.h"
#include "base/result.h"
#include "capture/files/ask.h"
#include "client/start.h"

namespace backstay::files {

using Tell = std::function<void(const std::string&)>;  // a line for people
using GoOn = std::function<bool()>;

// The asking side of one question. Starts a collector where none listens.
class Link : public Asker {
 public:
  // Without a program it starts none. It calls `go_on` each second; false ends the wait.
  Link(std::string socket, std::string program, Tell tell = nullptr, GoOn go_on = nullptr);
  // How the question went. Errors: agent_lost (no collector could be started, or it has ended),
  // timeout (it is silent), again (the wait was ended), errno's (`what` could not be done).
  Status status(const Answered& answered, const char* what) const;

  bool needs_files = false;  // it asks nobody, which is ok, unless may_have_files()

 private:
  static int connect_there(Asker& asker);
  static bool hear_there(Asker& asker, const Answer& answer);

  const std::string socket_;
  const std::string program_;
  const Tell tell_;
  const GoOn go_on_;
  Status unasked_;
};

// Of the job `job` beside the agent with this address.
std::string collector_socket(const client::AgentAddress& agent, const std::string& job);

// Starts a program of ours as a daemon, as the agent is started, and waits until it has said its
// last word on stderr. ok: it said none, so it works. Errors: agent_lost (its words), timeout.
Status start_daemon(const std::string& program, const std::vector<std::string>& arguments);

// Starts a collector where none listens, and says that this process, which becomes a program, may
// ask it later. Blocks until what a collector before it has left is at its place. `tell`: lines for
// people. Errors: agent_lost (it cannot be started; its own words), timeout.
Status ensure_collector(const std::string& socket, const std::string& program, const Tell& tell);

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
Status settle_all(const std::string& socket, const std::string& program, const Tell& tell,
                  const GoOn& go_on);

}  // namespace backstay::files
