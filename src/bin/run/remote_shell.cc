#include "bin/run/remote_shell.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace backstay::bin {
namespace {

// For a POSIX shell and for csh: everything between single quotes stays as it is.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_text(const Words& words) {
  std::string text = "exec";
  for (const std::string& word : words) text += " " + quoted(word);
  return text;
}

}  // namespace

RemoteShell RemoteShell::rsh(const std::string& shell, double timeout_s) {
  RemoteShell result;
  std::istringstream words(shell);
  for (std::string word; words >> word;) result.words_.push_back(word);
  if (std::filesystem::path(result.words_.front()).filename() == "ssh")
    result.words_.insert(
        result.words_.end(),
        {"-o", "BatchMode=yes", "-o", fmt::format("ConnectTimeout={:.0f}", std::ceil(timeout_s))});
  return result;
}

RemoteShell RemoteShell::srun(std::string tool, double requeue_after_s) {
  RemoteShell result;
  result.requeue_after_s_ = requeue_after_s;
  result.srun_ = true;
  result.words_ = {std::move(tool)};
  return result;
}

Words RemoteShell::line(const std::vector<std::string>& hosts) const {
  if (!srun_) {
    const std::string loop = "while read n; do echo backstay-host " + hosts.front() + " $n; done";
    return run(hosts.front(), {"sh", "-c", loop});
  }
  std::string names;
  for (const std::string& host : hosts) names += (names.empty() ? "" : ",") + host;
  Words words{"srun",
              "--overlap",
              "--no-kill",
              "--kill-on-bad-exit=0",
              "--unbuffered",
              "--job-name=backstay-agents",
              fmt::format("--nodes={}", hosts.size()),
              "--nodelist=" + names,
              fmt::format("--ntasks={}", hosts.size()),
              "--ntasks-per-node=1",

              words_.front(),
              "agent",
              "attend"};
  if (requeue_after_s_ > 0) words.push_back(fmt::format("--requeue-after={}", requeue_after_s_));
  return words;
}

Words RemoteShell::run(const std::string& host, const Words& command) const {
  if (!srun_) {
    Words words = words_;
    words.insert(words.end(), {host, command_text(command)});
    return words;
  }
  return step(host, {}, command);
}

// Without --unbuffered a job step holds bytes back until a line is whole.
Words RemoteShell::stream(const std::string& host, const Words& command) const {
  if (!srun_) return run(host, command);
  return step(host, {"--unbuffered", "--input=0", "--job-name=backstay-copies"}, command);
}

Words RemoteShell::step(const std::string& host, const Words& options, const Words& command) {
  Words words{"srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=" + host};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

bool is_of_job_step(const std::string& line) {
  return line.starts_with("srun: ") || line.starts_with("slurmstepd: ");
}

std::string choose_shell(const std::string& asked, const LauncherLine& line) {
  if (!asked.empty()) return asked;
  if (!line.remote_shell.empty()) return line.remote_shell;
  const bool openmpi = line.kind == LauncherKind::openmpi;
  for (const char* name : {openmpi ? "OMPI_MCA_plm_rsh_agent" : "HYDRA_LAUNCHER_EXEC",
                           openmpi ? "PRTE_MCA_plm_ssh_agent" : "I_MPI_HYDRA_BOOTSTRAP_EXEC"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      return first_of_list(value);
  return "ssh";
}

}  // namespace backstay::bin
