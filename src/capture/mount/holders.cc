#include "capture/mount/holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/fd.h"

namespace backstay::mount {

namespace {

// A short file, at most 8 KiB of it; "" where it cannot be read.
std::string text_of(int folder, const char* name) {
  const Fd file(::openat(folder, name, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  std::array<char, 8192> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  return got <= 0 ? "" : std::string(text.data(), static_cast<std::size_t>(got));
}

// The number behind `name`, to this base; UINT64_MAX where it is not there.
std::uint64_t number_behind(const std::string& text, std::string_view name, int base) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return UINT64_MAX;
  return std::strtoull(text.c_str() + at + name.size(), nullptr, base);
}

}  // namespace

// The flags of the task, and the last number, its exit code: both are set once it ends, before its
// files are closed.
bool tells_death_by_signal(const std::string& stat) {
  constexpr std::uint64_t exiting = 0x4;  // PF_EXITING
  constexpr std::uint64_t signal = 0x7f;
  const std::size_t name_end = stat.rfind(')');
  const std::size_t last = stat.find_last_of(' ');
  if (name_end == std::string::npos || last == std::string::npos) return false;
  std::size_t at = name_end + 1;  // before field 3
  for (int field = 3; field < 9; ++field) {
    at = stat.find(' ', at + 1);
    if (at == std::string::npos) return false;
  }
  const std::uint64_t flags = std::strtoull(stat.c_str() + at, nullptr, 10);
  return (flags & exiting) != 0 && (std::strtoull(stat.c_str() + last, nullptr, 10) & signal) != 0;
}

bool tells_writer_of(const std::string& fdinfo, std::uint64_t inode) {
  if (number_behind(fdinfo, "ino:", 10) != inode) return false;
  const std::uint64_t flags = number_behind(fdinfo, "flags:", 8);
  return flags != UINT64_MAX && (flags & O_ACCMODE) != O_RDONLY;
}

// A process that becomes another program closes files too, and holds a lock meanwhile that readers
// of /proc/PID/stat wait for: it would wait for us, and we for it. One that ends has no memory any
// more.
bool dies_by_signal(pid_t process) {
  if (process <= 0) return false;
  const std::string status = text_of(AT_FDCWD, fmt::format("/proc/{}/status", process).c_str());
  if (status.empty() || status.find("\nVmSize:") != std::string::npos) return false;
  return tells_death_by_signal(text_of(AT_FDCWD, fmt::format("/proc/{}/stat", process).c_str()));
}

bool holds_for_writing(pid_t process, std::uint64_t inode) {
  if (process <= 0) return false;
  const std::string path = fmt::format("/proc/{}/fdinfo", process);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (folder == nullptr) return false;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    if (tells_writer_of(text_of(::dirfd(folder.get()), entry->d_name), inode)) return true;
  }
  return false;
}

}  // namespace backstay::mount
