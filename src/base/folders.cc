#include "base/folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace backstay {

std::string normal_path(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

std::string parent_of(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  const auto slash = end == std::string::npos ? 0 : path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  const auto last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

Status make_folders(const std::string& path, std::vector<std::string>* made) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) == 0) {
      if (made != nullptr) made->push_back(part);
    } else {
      const int why = errno;
      struct stat info {};
      if (::stat(part.c_str(), &info) != 0) return errno_error("create the folder " + part, why);
      if (!S_ISDIR(info.st_mode)) return errno_error("create the folder " + part, ENOTDIR);
    }
    if (at == std::string::npos) return {};
  }
}

namespace {

// A file in the place of a folder, a link to nowhere or to itself, a name that is too long ...
bool is_about_the_path(int sys_errno) {
  return sys_errno == ENOTDIR || sys_errno == ENOENT || sys_errno == EEXIST || sys_errno == ELOOP ||
         sys_errno == ENAMETOOLONG || sys_errno == EINVAL;
}

Error with_advice(const Error& why, std::string_view keys) {
  const std::string message =
      why.message() + ": set " + std::string(keys) + " to a folder that you may write to";
  return {is_about_the_path(why.sys_errno()) ? Code::config : why.code(), message, why.sys_errno()};
}

}  // namespace

Status make_chosen_folder(const std::string& path, std::string_view keys) {
  const Status made = make_folders(path);
  if (made.ok()) return {};
  return with_advice(made.error(), keys);
}

Status make_writable_folder(const std::string& path, std::string_view keys) {
  BACKSTAY_TRY(make_chosen_folder(path, keys));
  if (::access(path.c_str(), W_OK | X_OK) == 0) return {};
  return with_advice(errno_error("write to the folder " + path, errno), keys);
}

}  // namespace backstay
