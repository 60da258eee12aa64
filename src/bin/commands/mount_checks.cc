#include "bin/commands/mount_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/folders.h"
#include "base/program.h"
#include "bin/parts/print.h"
#include "capture/mount/mounts.h"
#include "client/start.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

Error unreachable(const std::string& what, const std::string& path, int error) {
  if (error == ENAMETOOLONG)
    return {Code::long_path,
            fmt::format("{} '{}...' is too long: use a shorter path", what, path.substr(0, 60))};
  if (error == ENOTCONN)
    return {Code::busy, fmt::format("{} {} is a mount whose daemon has died: `backstay unmount {}` "
                                    "removes it",
                                    what, path, path)};
  if (error == ENOENT)
    return {Code::not_found,
            fmt::format("{} {} is missing: make it (mkdir -p {})", what, path, path)};
  return errno_error(fmt::format("look at {} {}", what, path), error);
}

// Absolute, links resolved; a folder.
Result<std::string> real_folder(const std::string& what, const std::string& path) {
  std::array<char, PATH_MAX> room{};
  if (path.size() >= room.size()) return unreachable(what, path, ENAMETOOLONG);
  if (::realpath(path.c_str(), room.data()) == nullptr) return unreachable(what, path, errno);
  const std::string real = room.data();
  std::error_code failed;
  const bool folder = fs::is_directory(real, failed);
  if (failed) return unreachable(what, path, failed.value());
  if (!folder) return Error(Code::invalid, fmt::format("{} {} is no folder", what, path));
  if (real.find('\n') != std::string::npos)
    return Error(Code::invalid, what + " has a line break in its name: use another folder");
  return real;
}

Status check_free(const std::string& folder) {
  for (const mount::Mount& one : mount::mounts()) {
    if (one.folder == folder)
      return Error(Code::busy, fmt::format("{} is mounted already, over {}: `backstay unmount {}` "
                                           "ends that",
                                           folder, one.target, folder));
    if (is_below(folder, one.folder))
      return Error(Code::invalid,
                   fmt::format("{} lies inside of {}, which is mounted over {}: mount elsewhere",
                               folder, one.folder, one.target));
  }
  std::error_code failed;
  const bool empty = fs::is_empty(folder, failed);
  if (failed) return errno_error("list " + folder, failed.value());
  if (empty) return {};
  return Error(Code::invalid, fmt::format("{} is not empty, and its files would be hidden: mount "
                                          "over an empty folder",
                                          folder));
}

Status check_target(const std::string& target) {
  struct statfs system = {};
  if (::statfs(target.c_str(), &system) != 0) return unreachable("TARGET", target, errno);
  if (system.f_type == FUSE_SUPER_MAGIC)
    return Error(Code::unsupported,
                 fmt::format("TARGET {} is a FUSE file system itself, and would be slow and not "
                             "sure of its order: name a folder of a disk, or of a network file "
                             "system of the kernel",
                             target));
  if ((system.f_flags & ST_RDONLY) != 0 || ::access(target.c_str(), W_OK | X_OK) != 0)
    return Error(Code::permission,
                 fmt::format("TARGET {} cannot be written: mount over a folder of yours", target));
  return {};
}

// What serves the mount must not wait for it.
Status check_own_folders(const std::string& folder, const Config& config) {
  const std::string socket = client::agent_address(config, "").socket_path;
  for (const std::string& own : {config.storage.dir, config.durable.dir, parent_of(socket)})
    if (!own.empty() && is_below(normal_path(own), folder))
      return Error(Code::invalid,
                   fmt::format("Backstay's own folder {} would lie inside of {}: choose another "
                               "one in the configuration, or mount elsewhere",
                               own, folder));
  return {};
}

Status check_fuse() {
  const Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device.valid() && errno == EACCES)
    return Error(Code::unsupported,
                 "/dev/fuse is closed to you: ask for mode 666, as most systems have it (chmod 666 "
                 "/dev/fuse)");
  if (!device.valid())
    return Error(Code::unsupported,
                 "there is no /dev/fuse here: load the module (modprobe fuse), or give it to the "
                 "container (--device /dev/fuse); `backstay exec --capture-files` needs none");
  if (find_program("fusermount3").empty())
    return Error(Code::unsupported, "fusermount3 is missing: install fuse3 (apt install fuse3)");
  return {};
}

std::string link_text(const std::string& path) {
  std::error_code failed;
  return fs::read_symlink(path, failed).string();
}

// What one process has of the folder; "" for nothing.
std::string use_of(const std::string& process, const std::string& folder) {
  if (is_below(link_text(process + "/cwd"), folder)) return "works in it";
  if (is_below(link_text(process + "/root"), folder)) return "has its root in it";
  if (is_below(link_text(process + "/exe"), folder)) return "runs a program of it";
  std::error_code failed;
  for (fs::directory_iterator at(process + "/fd", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string open = link_text(at->path().string());
    if (is_below(open, folder)) return "has " + open + " open";
  }
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(' ' + folder + '/') != std::string::npos) return "has a file of it mapped";
  return "";
}

}  // namespace

Result<MountFolders> check_mount(const std::string& folder, const std::string& target,
                                 const Config& config) {
  MountFolders found;
  BACKSTAY_ASSIGN(found.folder, real_folder("the folder", folder));
  BACKSTAY_ASSIGN(found.target, real_folder("TARGET", target));
  BACKSTAY_TRY(check_target(found.target));
  if (is_below(found.folder, found.target) || is_below(found.target, found.folder))
    return Error(Code::invalid,
                 fmt::format("{} and TARGET {} are one folder, or one lies inside of the other: "
                             "mount over an empty folder elsewhere",
                             found.folder, found.target));
  BACKSTAY_TRY(check_free(found.folder));
  BACKSTAY_TRY(check_own_folders(found.folder, config));
  BACKSTAY_TRY(check_fuse());
  return found;
}

Result<std::string> mounted_folder(const std::string& folder) {
  const std::string path = normal_path(fs::absolute(folder).string());
  std::array<char, PATH_MAX> room{};
  if (::realpath(parent_of(path).c_str(), room.data()) == nullptr)
    return unreachable("the folder", parent_of(path), errno);
  const std::string above = room.data();
  return (above == "/" ? "" : above) + path.substr(path.rfind('/'));
}

Result<std::string> mount_patterns(const std::vector<std::string>& globs,
                                   const std::string& folder) {
  std::string patterns;
  for (const std::string& glob : globs) {
    std::string relative = glob;
    if (glob.starts_with(folder + "/")) relative = glob.substr(folder.size() + 1);
    if (relative.empty() || relative.front() == '/' || relative.find('\n') != std::string::npos)
      return Error(Code::invalid,
                   fmt::format("--capture-files '{}' matches no file below {}: write it relative "
                               "to the mount, for example '*.restart' or '**/*.restart'",
                               glob, folder));
    patterns += (patterns.empty() ? "" : "\n") + relative;
  }
  return patterns;
}

std::string users_of(const std::string& folder) {
  constexpr int told_max = 5;
  std::string text;
  int told = 0;
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end && told < told_max;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    const std::string use = use_of(at->path().string(), folder);
    if (use.empty()) continue;
    std::ifstream file(at->path() / "comm");
    std::string program;
    std::getline(file, program);
    text += fmt::format("{}process {} ({}) {}", told++ == 0 ? "" : "; ", name, printable(program),
                        printable(use));
  }
  return text;
}

}  // namespace backstay::bin
