#include "agent/job_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

namespace backstay::agent {

Result<Fd> lock_job(const std::string& dir, const std::string& job) {
  const std::string folder = dir + "/" + job;
  std::error_code failure;
  const bool existed = std::filesystem::exists(folder, failure);
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    return errno_error("create the job's folder " + folder + " (set storage.dir)", failure.value());
  }
  if (!existed) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failure);
  }
  const std::string path = folder + "/lock";
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  // A disk that is mounted read-only, or that lets us only read, can still be restarted from.
  const int refused = errno;
  if (!fd.valid()) fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + path, refused);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error(Code::busy, "another agent serves job " + job + " in " + dir +
                                   "; use its socket (agent.socket), stop it with 'backstay agent "
                                   "stop', or name the job differently");
    }
    return errno_error("lock " + path, errno);
  }
  return fd;
}

}  // namespace backstay::agent
