#include "base/hold.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>

#include "base/checksum.h"
#include "base/fd.h"

namespace backstay {

namespace {

std::string name_begin(const std::string& job) {
  return fmt::format("hold-{:016x}-", checksum(std::as_bytes(std::span(job.data(), job.size()))));
}

// A file of the folder whose name begins so; "": there is none.
std::string first_with(const std::string& folder, const std::string& begin) {
  std::error_code none;
  for (std::filesystem::directory_iterator at(folder, none), end; !none && at != end;
       at.increment(none)) {
    if (at->path().filename().string().starts_with(begin)) return at->path().string();
  }
  return "";
}

}  // namespace

std::string hold_path(const std::string& folder, const std::string& job, HeldVersion version) {
  return fmt::format("{}/{}{}-{:016x}", folder, name_begin(job), version.number, version.run);
}

std::string find_hold(const std::string& folder, const std::string& job, VersionNumber number) {
  return first_with(folder, fmt::format("{}{}-", name_begin(job), number));
}

std::optional<Hold> Hold::take(const std::string& path) {
  for (;;) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return Hold("", Fd());
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      return Hold("", Fd());
    }
    struct stat named = {};
    struct stat open = {};
    const bool ours = ::stat(path.c_str(), &named) == 0 && ::fstat(file.get(), &open) == 0 &&
                      named.st_ino == open.st_ino && named.st_dev == open.st_dev;
    if (ours) return Hold(path, std::move(file));
  }
}

Hold::~Hold() {
  if (!path_.empty()) (void)::unlink(path_.c_str());
}

bool has_holds(const std::string& folder, const std::string& job) {
  return !first_with(folder, name_begin(job)).empty();
}

}  // namespace backstay
