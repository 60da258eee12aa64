// The command lines that reach a host: through the launcher's own remote shell (ssh), or through srun. No I/O.
#pragma once

#include <string>
#include <vector>

#include "bin/run/launcher_line.h"

namespace backstay::bin {

class RemoteShell {
 public:
  // `shell` is a command and its first arguments; ssh gets options with which it asks nobody and gives up after
  // `timeout_s`.
  static RemoteShell rsh(const std::string& shell, double timeout_s);
  // `tool` is this program's path, the same on all nodes: it starts the node's agent in the job step and attends it.
  // Not 0: after so long a silence it looks whether the job is to be requeued in place of us.
  static RemoteShell srun(std::string tool, double requeue_after_s = 0);

  // A command whose other end answers numbers (host_line.h). Several hosts: srun only.
  Words line(const std::vector<std::string>& hosts) const;
  // Runs a command on one host.
  Words run(const std::string& host, const Words& command) const;

 private:
  bool srun_ = false;
  Words words_;  // the shell, or the tool
  double requeue_after_s_ = 0;
};

// What the user asks for, else what the launcher would use: from its command line, from its variable, ssh.
// "off": there is no way.
std::string choose_shell(const std::string& asked, const LauncherLine& line);

}  // namespace backstay::bin
