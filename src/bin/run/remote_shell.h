// The command lines that reach a host: through the launcher's own remote shell (ssh), or through
// srun. No I/O.
#pragma once

#include <string>
#include <vector>

#include "bin/run/launcher_line.h"

namespace backstay::bin {

class RemoteShell {
 public:
  // `shell` is a command and its first arguments; ssh gets options with which it asks no questions
  // and gives up after `timeout_s`.
  static RemoteShell rsh(const std::string& shell, double timeout_s);
  // `tool` is this program's path, the same on all nodes: it starts the node's agent in the job
  // step and attends it. `requeue_after_s` not 0: after that much silence it checks whether it must
  // requeue the job in place of us.
  static RemoteShell srun(std::string tool, double requeue_after_s = 0);

  // A command whose other end answers numbers (host_line.h). Several hosts: srun only.
  Words line(const std::vector<std::string>& hosts) const;
  // Runs a command on one host.
  Words run(const std::string& host, const Words& command) const;
  // The same, where input and output carry bytes of any kind, and pass on at once what they get.
  Words stream(const std::string& host, const Words& command) const;

 private:
  static Words step(const std::string& host, const Words& options, const Words& command);

  bool srun_ = false;
  Words words_;  // the shell, or the tool
  double requeue_after_s_ = 0;
};

// A line of Slurm's own about a command that it has run: that it ended, not why.
bool is_of_job_step(const std::string& line);

// The shell that the user asks for, else that of the launcher: from its command line, from its
// variable, ssh. "off": there is none.
std::string choose_shell(const std::string& asked, const LauncherLine& line);

}  // namespace backstay::bin
