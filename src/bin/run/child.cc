#include "bin/run/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/fd.h"
#include "bin/parts/spawn.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

// For processes that were left, after SIGTERM and again after SIGKILL.
constexpr double polite_s = 2;

// The fields of /proc/PID/stat behind the command, which is in brackets and may hold any character:
// so they count from the last bracket. Empty: it cannot be read.
std::string fields_of(const fs::path& process) {
  std::ifstream stat(process / "stat");
  std::string line;
  std::getline(stat, line);
  const auto bracket = line.rfind(')');
  return bracket == std::string::npos || bracket + 4 > line.size() ? "" : line.substr(bracket + 2);
}

// Whether this process, which has ended, has waited for no child: such a child has touched memory.
bool is_childless(pid_t pid) {
  std::istringstream fields(fields_of(fs::path("/proc") / std::to_string(pid)));
  std::string skipped;
  for (int field = 0; field < 8; ++field) fields >> skipped;
  unsigned long faults_of_children = 1;
  return fields >> faults_of_children && faults_of_children == 0;
}

// Processes whose parent is `parent`; agents and collectors are left out: they are meant to stay.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string fields = fields_of(entry.path());
    if (fields.empty() || fields[0] == 'Z' || std::atoi(fields.c_str() + 2) != parent) continue;
    const auto program = fs::read_symlink(entry.path() / "exe", failure).filename().string();
    if (program.starts_with("backstayd") || program.starts_with("backstay-collector")) continue;
    children.push_back(static_cast<pid_t>(std::atoi(name.c_str())));
  }
  return children;
}

using Pids = std::vector<pid_t>;

void collect_descendants(pid_t parent, const Pids& ours, Pids& into) {
  for (const pid_t child : children_of(parent)) {
    if (std::find(ours.begin(), ours.end(), child) != ours.end()) continue;
    into.push_back(child);
    collect_descendants(child, ours, into);
  }
}

// Sends `signal` to all descendants except agents and ours, and waits at most `seconds` for their
// end. Each end is a SIGCHLD, which is blocked here, because orphans become our children. True if
// none is left.
bool end_descendants(int signal, const Pids& ours, double seconds) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGCHLD);
  const Clock& clock = system_clock();
  const auto deadline = clock.monotonic_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  for (bool first = true;; first = false) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::vector<pid_t> left;
    collect_descendants(::getpid(), ours, left);
    const std::uint64_t now = clock.monotonic_ns();
    if (left.empty() || now >= deadline) return left.empty();
    // SIGTERM is sent once and SIGKILL repeatedly, as new processes may have been started
    // meanwhile.
    if (first || signal == SIGKILL)
      for (const pid_t pid : left) ::kill(pid, signal);
    timespec time{};
    time.tv_sec = static_cast<time_t>((deadline - now) / 1'000'000'000);
    time.tv_nsec = static_cast<long>((deadline - now) % 1'000'000'000);
    ::sigtimedwait(&ends, nullptr, &time);
  }
}

// In the child; reports to the parent through `report` why exec failed.
[[noreturn]] void become(const std::vector<char*>& argv, const sigset_t& mask, void (*pipe)(int),
                         int report) {
  ::setpgid(0, 0);
  if (::isatty(STDIN_FILENO)) {
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::close(null);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::signal(SIGPIPE, pipe);
  ::execvp(argv[0], argv.data());
  const int why = errno;
  const ssize_t written = ::write(report, &why, sizeof why);
  ::_exit(written == sizeof why ? 127 : 126);
}

}  // namespace

Child::Child() {
  ::sigemptyset(&watched_);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    ::sigaddset(&watched_, signal);
  ::sigprocmask(SIG_BLOCK, &watched_, &before_);
  pipe_before_ =
      ::signal(SIGPIPE, SIG_IGN);  // go on watching the child if our messages have no reader
  signals_.reset(::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Child::~Child() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

Status Child::start(const std::vector<std::string>& words) {
  std::vector<std::string> copy = words;
  const auto argv = argument_vector(copy);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  end_.reset();
  pid_ = ::fork();
  if (pid_ < 0) return errno_error("start " + words.front(), errno);
  if (pid_ == 0) become(argv, before_, pipe_before_, to.get());
  ::setpgid(pid_, pid_);  // in both processes, so that send() finds the group at once
  to.reset();
  int why = 0;
  if (::read(from.get(), &why, sizeof why) != sizeof why) return {};
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  return errno_error("start " + words.front(), why);
}

void Child::reap() {
  for (;;) {
    siginfo_t ended{};
    const int found = ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
    if (found != 0 || ended.si_pid == 0) return;
    const bool childless = ended.si_pid == pid_ && is_childless(pid_);
    int status = 0;
    ::waitpid(ended.si_pid, &status, 0);
    if (ended.si_pid != pid_) continue;  // an orphan that became ours
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end_ = ChildEnd{signal ? 128 + signal : WEXITSTATUS(status), signal, childless};
  }
}

int Child::wait(double timeout_s, std::vector<pollfd> others) {
  const std::uint64_t deadline = deadline_in(timeout_s);
  others.push_back({signals_.get(), POLLIN, 0});
  for (;;) {
    reap();
    if (end_) return SIGCHLD;
    const int ready = ::poll(others.data(), others.size(), milliseconds_until(deadline));
    if (ready == 0) return 0;
    signalfd_siginfo signal{};
    if (ready < 0 || ::read(signals_.get(), &signal, sizeof signal) != sizeof signal) {
      if (ready > 0) return 0;
      continue;
    }
    if (signal.ssi_signo != SIGCHLD) return static_cast<int>(signal.ssi_signo);
  }
}

int Child::pending() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo != SIGCHLD) return static_cast<int>(signal.ssi_signo);
  }
  return 0;
}

void Child::send(int signal) const {
  if (pid_ > 0 && !end_) ::kill(-pid_, signal);
}

int Child::end_leftovers(const std::vector<pid_t>& ours) const {
  std::vector<pid_t> left;
  collect_descendants(::getpid(), ours, left);
  const int count = static_cast<int>(left.size());
  if (!left.empty() && !end_descendants(SIGTERM, ours, polite_s))
    end_descendants(SIGKILL, ours, polite_s);
  return count;
}

}  // namespace backstay::bin
