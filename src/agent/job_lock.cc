#include "agent/job_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <sstream>

#include "base/folders.h"
#include "base/machine.h"

namespace backstay::agent {

namespace {

constexpr std::size_t holder_bytes_max = 300;

// A second name is somebody else's (`cp -al` of the folder, a link to a file of theirs): it is not written into, and what
// stands in it may be of an earlier holder.
bool has_one_name(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_nlink == 1;
}

// For the message that others get. Nothing depends on it: the lock is the kernel's.
void write_holder(int fd) {
  if (!has_one_name(fd)) return;
  const std::string text = fmt::format("{} {}\n", ::getpid(), host_name());
  if (::ftruncate(fd, 0) == 0) (void)!::pwrite(fd, text.data(), text.size(), 0);
}

struct Holder {
  int pid = 0;  // 0: not known
  std::string host;
};

Holder holder(int fd) {
  if (!has_one_name(fd)) return {};
  std::array<char, holder_bytes_max> text{};
  if (::pread(fd, text.data(), text.size() - 1, 0) <= 0) return {};
  std::istringstream words(text.data());
  Holder found;
  if (!(words >> found.pid >> found.host) || found.pid <= 0) return {};
  const bool printable =
      std::all_of(found.host.begin(), found.host.end(), [](char c) { return c > ' ' && c < 127; });
  if (!printable) return {};
  // What a holder on a read-only disk could not write over.
  if (found.host == host_name() && ::kill(found.pid, 0) != 0 && errno == ESRCH) return {};
  return found;
}

std::string served(int fd, const std::string& dir, const std::string& job) {
  const auto [pid, host] = holder(fd);
  const std::string who =
      pid == 0 ? ""
               : fmt::format(" (process {} on {}; to end it there: backstay agent stop --pid {})",
                             pid, host, pid);
  return fmt::format("another agent{} serves job {} in {}", who, job, dir);
}

std::string lives_elsewhere(int fd, const std::string& dir, const std::string& job) {
  const auto [pid, host] = holder(fd);
  const std::string where = pid == 0 ? "" : fmt::format(" on {} (agent: process {})", host, pid);
  return fmt::format(
      "another program of job {} lives{} and copies its versions to {}; give one of them another "
      "name (BACKSTAY_JOB) or another durable.dir",
      job, where, dir);
}

// `taken(fd)`: what is said where another one holds it.
Result<Fd> lock_file(const std::string& dir, const std::string& job, const std::string& name,
                     const std::function<std::string(int)>& taken) {
  const std::string folder = dir + "/" + job;
  BACKSTAY_TRY(make_chosen_folder(folder, "storage.dir (or durable.dir)"));
  const std::string path = folder + "/" + name;
  constexpr int ours = O_CLOEXEC | O_NOFOLLOW;  // what a link names is not ours to write into
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | ours, 0600));
  // A disk that is mounted read-only, or that lets us only read, can still be restarted from.
  const int refused = errno;
  if (!fd.valid()) fd = Fd(::open(path.c_str(), O_RDONLY | ours));
  if (!fd.valid() && refused == ELOOP)
    return Error(Code::config, path + " is a link, not a file of Backstay: remove it");
  if (!fd.valid()) return errno_error("open " + path, refused);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error(Code::busy, taken(fd.get()));
    return errno_error("lock " + path, errno);
  }
  write_holder(fd.get());
  return fd;
}

}  // namespace

Result<Fd> lock_job(const std::string& dir, const std::string& job) {
  return lock_file(dir, job, "lock", [&](int fd) {
    return served(fd, dir, job) +
           "; use its socket (agent.socket), stop it, or name the job differently";
  });
}

Result<Fd> lock_live(const std::string& dir, const std::string& job) {
  return lock_file(dir, job, "live", [&](int fd) { return lives_elsewhere(fd, dir, job); });
}

Status check_unlocked(const std::string& dir, const std::string& job) {
  const Fd fd(::open((dir + "/" + job + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() || ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Error(Code::busy, served(fd.get(), dir, job));
}

}  // namespace backstay::agent
