#include "bin/parts/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>

#include "base/clock.h"
#include "base/fd.h"

namespace backstay::bin {
namespace {

constexpr std::size_t text_bytes_max = 1 << 20;

// Reads until the end, or until there is too much.
Result<std::string> read_all(int from, std::uint64_t deadline) {
  std::string text;
  std::array<char, 4096> bytes{};
  while (text.size() < text_bytes_max) {
    if (!wait_readable(from, deadline)) return Error(Code::timeout, "no answer in time");
    const ssize_t got = ::read(from, bytes.data(), bytes.size());
    if (got == 0) break;
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// The exit status.
int wait_for_end(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The same; kills a process that has not ended by then.
int wait_for(pid_t pid, std::uint64_t deadline) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid() || !wait_readable(process.get(), deadline)) ::kill(pid, SIGKILL);
  return wait_for_end(pid);
}

}  // namespace

std::vector<char*> argument_vector(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> spawn(const std::vector<std::string>& words, const std::array<int, 3>& standard,
                    bool own_group) {
  std::vector<std::string> copy = words;
  const auto argv = argument_vector(copy);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    if (standard[descriptor] < 0)
      ::posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
    else
      ::posix_spawn_file_actions_adddup2(&files, standard[descriptor], descriptor);
  }
  posix_spawnattr_t attributes;  // a caller that waits for signals has blocked them
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t defaults;  // Child ignores it
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group);
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (failure != 0) return errno_error("start " + words.front(), failure);
  return pid;
}

int run_quietly(const std::vector<std::string>& words) {
  const auto pid = spawn(words, {-1, -1, -1});
  if (!pid.ok()) return 127;
  const int status = wait_for_end(*pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<Result<std::string>> run_and_read_each(
    const std::vector<std::vector<std::string>>& commands, double timeout_s) {
  constexpr std::size_t at_once = 32;
  std::vector<Result<std::string>> answers;
  while (answers.size() < commands.size()) {
    std::vector<std::future<Result<std::string>>> running;
    const std::size_t first = answers.size();
    for (std::size_t i = first; i < std::min(first + at_once, commands.size()); ++i)
      running.push_back(std::async(std::launch::async, run_and_read, commands[i], timeout_s));
    for (auto& one : running) answers.push_back(one.get());
  }
  return answers;
}

Result<std::string> run_and_read(const std::vector<std::string>& words, double timeout_s) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  Fd from(ends[0]);
  Fd to(ends[1]);
  BACKSTAY_ASSIGN(const pid_t pid, spawn(words, {-1, to.get(), -1}));
  to.reset();
  const std::uint64_t deadline = deadline_in(timeout_s);
  const Result<std::string> text = read_all(from.get(), deadline);
  from.reset();  // a child that writes more must not wait for us
  const int status = wait_for(pid, text.ok() ? deadline : 0);
  if (!text.ok()) return text.error().context(words.front());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return Error(Code::io, words.front() + " failed");
}

}  // namespace backstay::bin
