#include "client/run_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include "base/clock.h"

namespace backstay::client {

namespace {

constexpr int pause_ms = 20;

// Offsets of files have 63 bits. A run that shares its byte with an earlier one, by a chance of one
// in 2^62, does not see it.
constexpr RunId byte_mask = (RunId{1} << 62) - 1;
constexpr RunId no_run = 0;

struct flock range(short type, off_t start, off_t length) {
  struct flock all {};
  all.l_type = type;
  all.l_whence = SEEK_SET;
  all.l_start = start;
  all.l_len = length;
  return all;
}

// The process that holds a lock in the range; 0: none.
pid_t holder(int file, off_t start, off_t length) {
  struct flock found = range(F_WRLCK, start, length);
  if (::fcntl(file, F_GETLK, &found) != 0 || found.l_type == F_UNLCK) return 0;
  return found.l_pid;
}

// What a link names is not ours, and a pipe of that name must not make us wait.
Fd open_marks(const std::string& path, int flags) {
  return Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
}

}  // namespace

RunMark::RunMark(const std::string& dir, const std::string& job, RunId run)
    : job_(job), path_(dir + "/" + job + "/ranks"), byte_(static_cast<off_t>(run & byte_mask)) {}

pid_t RunMark::other_run() {
  if (!file_.valid()) file_ = open_marks(path_, 0);
  if (!file_.valid()) return 0;  // no run was here
  const pid_t before = byte_ == 0 ? 0 : holder(file_.get(), 0, byte_);
  constexpr off_t to_the_end = 0;
  return before != 0 ? before : holder(file_.get(), byte_ + 1, to_the_end);
}

Status RunMark::refuse_other_run(double patience_s) {
  const std::uint64_t deadline = deadline_in(patience_s);
  for (;;) {
    const pid_t pid = other_run();
    if (pid == 0) return {};
    if (system_clock().monotonic_ns() >= deadline) {
      return Error(Code::busy,
                   fmt::format("process {} of an earlier run of job {} is alive on this node, "
                               "though its agent is gone; wait for its end or end it (kill {}), or "
                               "give this run another name (BACKSTAY_JOB)",
                               pid, job_, pid));
    }
    ::poll(nullptr, 0, pause_ms);
  }
}

void RunMark::set() {
  if (!file_.valid()) file_ = open_marks(path_, O_CREAT);
  if (!file_.valid()) return;
  struct flock mine = range(F_RDLCK, byte_, 1);
  (void)::fcntl(file_.get(), F_SETLK, &mine);
}

Status refuse_running(const std::string& dir, const std::string& job) {
  return RunMark(dir, job, no_run).refuse_other_run();
}

}  // namespace backstay::client
