// The hosts that `backstay run` starts a program on: the list for the launcher, the lost hosts, and
// the hosts that replace them.
//
// 1. make() takes the launcher's command line: its hosts, ranks and remote shell, or the allocation
//    of Slurm.
// 2. reachable() connects with every host; nothing is started if one does not answer.
// 3. While the program runs, lost() is true as soon as one of its hosts is gone: launchers can wait
//    for such a host for a quarter of an hour.
// 4. replace() asks all hosts after a failure, drops those that are gone, and takes spares.
// 5. command() is the command for the next start.
// Every decision is reported in one line. One thread; reachable(), replace() and the destructor
// block as HostWatch does.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bin/parts/capture.h"
#include "bin/run/host_choice.h"
#include "bin/run/host_watch.h"
#include "bin/run/launcher_line.h"
#include "bin/run/remote_shell.h"

namespace backstay::bin {

struct HostOptions {
  std::string hosts_file;
  unsigned spares = 0;
  bool oversubscribe = false;
  std::string remote_shell;  // "": the launcher's; "off"
  double timeout_s = 10;
  bool requeue = false;  // Slurm
};

// An event's name, the text, and more keys for JSON.
using Say = std::function<void(const char*, const std::string&, const nlohmann::ordered_json&)>;

// The command's words to its launcher. nullopt if it has no launcher, or an unknown one; may ask
// the launcher for its version.
std::optional<LauncherLine> read_launcher(const Words& words);

class RunHosts {
 public:
  // `launcher`: as read_launcher() has it. Null if there are no hosts: then the program runs where
  // it always does.
  // Errors: invalid, few_nodes, and those of reading the file of hosts.
  static Result<std::unique_ptr<RunHosts>> make(const HostOptions& options, const Words& words,
                                                const std::optional<LauncherLine>& launcher,
                                                Say say);
  ~RunHosts();
  RunHosts(const RunHosts&) = delete;
  RunHosts& operator=(const RunHosts&) = delete;

  bool slurm() const { return line_.kind == LauncherKind::slurm; }
  // Errors: unreachable (each such host was reported).
  Status reachable();
  // Whether `backstay exec` with these options starts a program on each host that is not this one.
  // In Slurm its agents do not start otherwise. Errors: unsupported (names the hosts).
  Status can_capture(const CaptureOptions& options) const;
  // The descriptors to poll, and the latest time for the next call of lost() (negative: never).
  std::vector<pollfd> fds() const;
  double next_step_s() const;
  std::vector<pid_t> processes() const;
  // True once for each host of the program that is gone.
  bool lost();

  enum class Next { same, replaced, too_few };
  Next replace();
  Result<Words> command();

  // Whether this machine is one of the hosts in use.
  bool runs_here() const;
  // Whether the first rank runs on this machine, so that this node's agent can be asked for the
  // job.
  bool starts_here() const;
  // Runs this program with `arguments` on hosts of the job, the first `count` of them that are not
  // this machine. Returns the outputs of those that succeeded.
  std::vector<std::string> ask(const Words& arguments, std::size_t count) const;
  struct Reach {
    std::vector<std::string> in_use = {};
    std::vector<std::string> all = {};  // and spares
    // All but this machine whose agents may serve other programs: none without a remote shell, and
    // none in Slurm, where a job has agents of its own.
    std::vector<std::string> others = {};
    // Runs this program on a host, this machine or another; its input and output are a line to it.
    // Empty: there is no remote shell.
    std::function<Words(const std::string& host, const Words& arguments)> line = {};
  };
  // Must not outlive this object.
  Reach reach() const;
  struct Question {
    std::string host;  // any that the remote shell reaches
    Words arguments;
  };
  // Runs the same on each of these hosts, many at once, and returns the outputs; each may take
  // `work_s` beside the time to connect.
  std::vector<Result<std::string>> ask_each(const std::vector<Question>& questions,
                                            double work_s) const;
  // For the last message: the hosts in use, and those that were lost.
  nlohmann::ordered_json summary() const;
  // Ends the processes that were started on the hosts; in Slurm these are the agents, which bring
  // their versions to the disk.
  void close(double patience_s);

 private:
  RunHosts(const HostOptions& options, Words words, LauncherLine line, Say say)
      : options_(options), words_(std::move(words)), line_(std::move(line)), say_(std::move(say)) {}
  Result<std::vector<Host>> find_hosts();
  Status choose(std::vector<Host> hosts);
  Words on_host(const std::string& host, const Words& arguments) const;
  Words tool_on(const std::string& host, const Words& arguments) const;
  bool take_news();
  void say_too_few() const;
  bool is_in_use(const std::string& name) const;

  const HostOptions options_;
  const Words words_;
  const LauncherLine line_;
  const Say say_;
  unsigned ranks_ = 0;  // 0: not known
  EnvList env_list_;
  bool oversubscribe_ = false;
  bool changed_ = false;  // the launcher needs other hosts than its command line names
  HostChoice choice_;
  std::unique_ptr<RemoteShell> shell_;
  std::unique_ptr<HostWatch> watch_;  // both null: hosts are not watched
  std::set<std::string> gone_;
  std::vector<std::string> lost_;
  std::string file_;  // of hosts, temporary
};

}  // namespace backstay::bin
