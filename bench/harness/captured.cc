#include "bench/harness/captured.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "bench/harness/shared.h"

namespace backstay::bench {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

// Runs a program and waits for it. False: it has failed.
bool succeeds(const std::vector<std::string>& words) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);  // our results stand alone there
    become(words);
  }
  int status = 1;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

struct Started {
  pid_t pid = 0;
  int to = -1;
  int from = -1;
};

std::string read_line(int from) {
  std::string line;
  for (char byte = 0; ::read(from, &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

Started start(const std::vector<std::string>& words) {
  int down[2];
  int up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) die("no pipe");
  const pid_t pid = ::fork();
  if (pid < 0) die("no process");
  if (pid == 0) {
    ::dup2(down[0], STDIN_FILENO);
    ::dup2(up[1], STDOUT_FILENO);
    become(words);
  }
  ::close(down[0]);
  ::close(up[1]);
  return {pid, down[1], up[0]};
}

CapturedPattern::Written read_times(const Started& process) {
  CapturedPattern::Written one;
  const std::string line = read_line(process.from);
  if (std::sscanf(line.c_str(), "%lld %lld %ju", &one.began_ns, &one.closed_ns, &one.bytes) != 3)
    die("a writer has failed");
  return one;
}

void wait_for(const Started& process) {
  int status = 1;
  ::close(process.to);
  ::close(process.from);
  if (::waitpid(process.pid, &status, 0) != process.pid || status != 0)
    die("a writer has ended with an error");
}

}  // namespace

std::string cannot_mount() {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return "/dev/fuse cannot be used";
  return succeeds({"fusermount3", "--version"}) ? "" : "there is no fusermount3";
}

CapturedPattern::CapturedPattern(CapturedOptions options, bool by_mount)
    : options_(std::move(options)),
      by_mount_(by_mount),
      place_(options_.dir + (by_mount ? "/mounted" : "/captured")),
      at_home_(by_mount ? options_.dir + "/over" : place_) {
  fs::create_directories(place_);
  fs::create_directories(at_home_);
  ::setenv("BACKSTAY_CONFIG", options_.config.c_str(), 1);
  if (by_mount_ && !succeeds({options_.backstay, "mount", place_, "--over", at_home_}))
    die("cannot mount " + place_);
}

CapturedPattern::~CapturedPattern() {
  if (by_mount_) succeeds({options_.backstay, "unmount", place_});
  ::unsetenv("BACKSTAY_CONFIG");
}

std::string CapturedPattern::file_of(int process) const {
  return "process-" + std::to_string(process);
}

CapturedPattern::Took CapturedPattern::run(int checkpoints, int work) const {
  std::vector<Started> processes;
  for (int process = 0; process < options_.processes; ++process) {
    std::vector<std::string> words;
    if (!by_mount_) words = {options_.backstay, "exec", "--capture-files=" + place_ + "/*", "--"};
    for (const std::string& word :
         {options_.writer, place_ + "/" + file_of(process), std::to_string(options_.seed),
          std::to_string(process), std::to_string(options_.shrink), std::to_string(checkpoints),
          std::to_string(work)})
      words.push_back(word);
    processes.push_back(start(words));
  }
  for (const Started& process : processes)
    if (read_line(process.from) != "ready") die("a writer could not be started");
  for (const Started& process : processes)
    if (::write(process.to, "g", 1) != 1) die("a writer has ended");
  std::vector<Written> all;
  for (const Started& process : processes) all.push_back(read_times(process));
  for (const Started& process : processes) wait_for(process);  // those of exec wait for the files
  // The mount has no program at whose end to wait: any call that changes a file waits for it.
  if (by_mount_)
    for (int process = 0; process < options_.processes; ++process)
      if (::chmod((place_ + "/" + file_of(process)).c_str(), 0600) != 0) die("chmod");
  return took(all, now_ns());
}

CapturedPattern::Took CapturedPattern::took(const std::vector<Written>& all,
                                            std::int64_t home_ns) const {
  Took took;
  long long first_ns = all.front().began_ns, last_ns = 0;
  for (int process = 0; process < options_.processes; ++process) {
    const Written& one = all[static_cast<std::size_t>(process)];
    took.slowest_s =
        std::max(took.slowest_s, 1e-9 * static_cast<double>(one.closed_ns - one.began_ns));
    first_ns = std::min(first_ns, one.began_ns);
    last_ns = std::max(last_ns, one.closed_ns);
    const std::string file = at_home_ + "/" + file_of(process);
    if (fs::file_size(file) != one.bytes) die(file + " has the wrong length");
    fs::remove(place_ + "/" + file_of(process));
  }
  took.span_s = 1e-9 * static_cast<double>(last_ns - first_ns);
  took.home_s = 1e-9 * static_cast<double>(home_ns - first_ns);
  return took;
}

void CapturedPattern::measure(Samples& samples) {
  const Took took = run(1, 0);
  samples.add("blocked_s", took.slowest_s);
  samples.add("on_disk_s", took.home_s);
}

void CapturedPattern::measure_run(Samples& samples) {
  const Took took = run(options_.checkpoints, options_.work);
  samples.add("program_s", took.span_s);
  samples.add("run_s", took.home_s);
}

}  // namespace backstay::bench
