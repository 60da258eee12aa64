// A tool's conversation with this node's agent (docs/protocol/agent.md, "Tools").
//
// Blocks for at most its patience. One thread. Owns the connection.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/fd.h"
#include "base/result.h"
#include "wire/message.h"

namespace backstay::bin {

inline constexpr double answer_timeout_s = 20;

class AgentLink {
 public:
  // An agent that has not answered after `patience_s` (at most answer_timeout_s) hangs: agent_lost,
  // the message names its process. Errors: agent_lost (none runs; the message says how to start
  // one), protocol, permission.
  static Result<AgentLink> connect(const Config& config, double patience_s = answer_timeout_s);

  // Sends a question of the page that is answered with JSON. Errors: not_found (the agent does not
  // know the job or the version, or has no ranks of it), busy (Forget: it still needs the version,
  // and says for what; EndRanks: they are of another run), protocol.
  Result<nlohmann::ordered_json> ask(const wire::Message& question);
  // Sends one that is answered without content.
  Status tell(const wire::Message& question);
  // Blocks until the version is there (as in status), at most `timeout_s`. Errors: io (it failed),
  // not_found (the job is not open there, or was closed), timeout.
  Result<nlohmann::ordered_json> await_newer(const wire::AwaitNewer& version, double timeout_s);
  // Blocks until the agent has closed the connection and has ended, at most `timeout_s`. Errors:
  // timeout, io (versions were lost; the message names them).
  Status wait_until_gone(double timeout_s);

 private:
  AgentLink(Fd socket, std::string path, int pid, double patience_s)
      : socket_(std::move(socket)), path_(std::move(path)), pid_(pid), patience_s_(patience_s) {}
  Result<std::string> answer();

  Fd socket_;
  std::string path_;
  int pid_;
  double patience_s_;
};

// The status of this node's agent. Errors: as those of connect().
Result<nlohmann::ordered_json> agent_status(const Config& config,
                                            double patience_s = answer_timeout_s);
// A job in the agent's status, the one in the folder `dir` ("": in any); null if there is none.
nlohmann::ordered_json job_of(const nlohmann::ordered_json& status, const std::string& job,
                              const std::string& dir);
// The same of this node's agent; null also if none answers.
nlohmann::ordered_json job_in_agent(const Config& config, const std::string& job,
                                    const std::string& dir, double patience_s = answer_timeout_s);
// The versions of such a job; none where it is null.
std::vector<nlohmann::ordered_json> versions_of(const nlohmann::ordered_json& job);

}  // namespace backstay::bin
