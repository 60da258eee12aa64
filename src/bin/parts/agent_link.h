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

  Result<nlohmann::ordered_json> status();
  // Errors: not_found (the agent does not know the job).
  Status request(const std::string& job, bool stop);
  // The nodes that have the files of a version on their disks (docs/protocol/agent.md).
  // Errors: not_found (not known there).
  Result<nlohmann::ordered_json> where(const std::string& job, const std::string& dir,
                                       VersionNumber version);
  // No restart takes the version any more; it may be removed.
  // Errors: not_found (the job is not open there), busy (the agent still needs it; the message says
  // for what).
  Status forget(const std::string& job, const std::string& dir, VersionNumber version);
  // Another host has a copy of a version of captured files, synced.
  // Errors: not_found (the job or the version is not there).
  Status copied(const std::string& job, const std::string& dir, VersionNumber version, RunId run);
  // Ends the ranks of that run that are connected there.
  // Errors: not_found (there are none), busy (they are of another run).
  Result<nlohmann::ordered_json> end_ranks(const std::string& job, const std::string& dir,
                                           RunId run);
  // Blocks until the version is there (as in status), at most `timeout_s`. Errors: io (it failed),
  // not_found (the job is not open there, or was closed), timeout.
  Result<nlohmann::ordered_json> await_newer(const wire::AwaitNewer& version, double timeout_s);
  // With `drain` the agent brings captured versions to the disk first.
  Status shutdown(bool drain);
  // Blocks until the agent has closed the connection and has ended, at most `timeout_s`. Errors:
  // timeout, io (versions were lost; the message names them).
  Status wait_until_gone(double timeout_s);

 private:
  AgentLink(Fd socket, std::string path, int pid, double patience_s)
      : socket_(std::move(socket)), path_(std::move(path)), pid_(pid), patience_s_(patience_s) {}
  Result<std::string> ask(const wire::Message& question);
  Result<std::string> answer();
  bool readable_by(std::uint64_t deadline) const;

  Fd socket_;
  std::string path_;
  int pid_;
  double patience_s_;
};

// A job in the agent's status, the one in the folder `dir` ("": in any); null if there is none.
nlohmann::ordered_json job_of(const nlohmann::ordered_json& status, const std::string& job,
                              const std::string& dir);
std::vector<nlohmann::ordered_json> versions_of(const nlohmann::ordered_json& status,
                                                const std::string& job, const std::string& dir);

}  // namespace backstay::bin
