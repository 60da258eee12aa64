#include "bin/commands/agent_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace backstay::bin {

namespace {

// Its first 15 characters, as the system keeps them.
std::string name_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

Status send_signal(const Fd& process, int pid) {
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) == 0 || errno == ESRCH) {
    return {};
  }
  return errno_error(fmt::format("end process {}", pid), errno);
}

Status wait_for_end(const Fd& process, int pid, double timeout_s) {
  if (wait_readable(process.get(), deadline_in(timeout_s))) return {};
  return Error(Code::timeout,
               fmt::format("the agent, process {}, has not ended yet; it may still be writing "
                           "(--now gives up what is not on the disk)",
                           pid));
}

}  // namespace

Status end_agent_process(int pid, bool now, double timeout_s) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) {
    if (errno == ESRCH) return Error(Code::not_found, fmt::format("no process {} runs here", pid));
    return errno_error(fmt::format("look at process {}", pid), errno);
  }
  // The name is read while the process lives: a process that ends now is not mistaken for another
  // one.
  if (const std::string name = name_of(pid); name != "backstayd") {
    return Error(Code::invalid, fmt::format("process {} is no agent, it is '{}'", pid, name));
  }
  BACKSTAY_TRY(send_signal(process, pid));
  if (now) BACKSTAY_TRY(send_signal(process, pid));
  return wait_for_end(process, pid, timeout_s);
}

}  // namespace backstay::bin
