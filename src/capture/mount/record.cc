#include "capture/mount/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <span>

#include "base/checksum.h"
#include "base/clock.h"

namespace backstay::mount {

std::string record_path(const std::string& folder, const std::string& mounted_at) {
  return fmt::format("{}/mount-{:016x}", folder,
                     checksum(std::as_bytes(std::span(mounted_at.data(), mounted_at.size()))));
}

Result<Fd> write_record(const std::string& path, const Record& record) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return errno_error("open " + path, errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return errno_error("lock " + path, errno);
    return Error(Code::busy, record.folder + " is being mounted, or unmounted, by another process");
  }
  const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n", record.pid, record.job,
                                       record.folder, record.target, record.store);
  const bool written =
      ::ftruncate(file.get(), 0) == 0 &&
      ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written) return errno_error("write " + path, errno);
  return file;
}

Result<Record> read_record(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error(Code::not_found, "there is no " + path);
  Record record;
  std::string pid;
  if (!std::getline(file, pid) || !std::getline(file, record.job) ||
      !std::getline(file, record.folder) || !std::getline(file, record.target))
    return Error(Code::format, path + " is not whole");
  (void)std::getline(file, record.store);
  record.pid = std::atoi(pid.c_str());
  return record;
}

bool end_daemon(const std::string& path, double timeout_s) {
  const auto record = read_record(path);
  if (!record.ok()) return true;
  // In this order: what has the lock after the process was opened is that process.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, record->pid, 0)));
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!process.valid() || !file.valid()) return true;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
  (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0);
  return wait_readable(process.get(), deadline_in(timeout_s));
}

}  // namespace backstay::mount
