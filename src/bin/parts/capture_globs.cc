#include "bin/parts/capture_globs.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <array>
#include <filesystem>

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t globs_bytes_max = 65535;  // the library has no more room for them
constexpr std::array system_folders = {"usr",  "lib", "lib32", "lib64", "libx32", "bin",
                                       "sbin", "etc", "boot",  "proc",  "sys",    "dev"};

// The library that captures has these rules too (src/capture/files): `*` stands for no "/", `**`
// for any number of them. fnmatch() knows one kind of star at a time; the wider one errs to the
// safe side.
bool matches(const std::string& glob, const std::string& name) {
  const int stars = glob.find("**") == std::string::npos ? FNM_PATHNAME : 0;
  return ::fnmatch(glob.c_str(), name.c_str(), stars) == 0;
}

// "a" and "b.c" stand for all names.
bool takes_everything_in(const std::string& glob, const std::string& folder) {
  return matches(glob, folder + "a") && matches(glob, folder + "b.c");
}

Error refusal(const std::string& glob, const std::string& why) {
  return {
      Code::invalid,
      fmt::format("--capture-files '{}' {}; write the files that the program saves, for example "
                  "'*.restart' or 'out/*'",
                  glob, why)};
}

// "out/*.restart": the folders before the first one with a wildcard, with "/" behind them.
std::string literal_folder(const std::string& glob) {
  const std::string literal = glob.substr(0, glob.find_first_of("*?["));
  return literal.substr(0, literal.rfind('/') + 1);
}

// A folder's name as a pattern that matches it alone.
std::string quoted(const std::string& folder) {
  std::string text;
  for (const char c : folder)
    text += std::string_view("*?[\\").find(c) == std::string_view::npos ? std::string(1, c)
            : c == '\\'                                                 ? "\\\\"
                                                                        : fmt::format("[{}]", c);
  return text;
}

// The part of `text` up to the next "/" behind `from`.
std::string component(const std::string& text, std::size_t from) {
  return text.substr(from, text.find('/', from) - from);
}

Status check(const std::string& glob, const std::string& absolute, const CaptureFolders& folders) {
  const std::string first = component(absolute, 1);
  const std::string last = absolute.substr(absolute.rfind('/') + 1);
  if (last.empty()) return refusal(glob, "is a folder");
  for (const char* folder : system_folders)
    if (matches(first, folder))
      return refusal(glob, fmt::format("takes in files of the system below /{}", folder));
  const bool libraries = matches(last, "libx.so") || matches(last, "libx.so.1") ||
                         last.ends_with(".so") || last.find(".so.") != std::string::npos;
  if (libraries && !takes_everything_in(last, ""))
    return refusal(glob, "takes in libraries, which programs load");
  const std::string working = folders.working + (folders.working.ends_with('/') ? "" : "/");
  if (takes_everything_in(absolute, working))
    return refusal(glob,
                   "takes in every file of the working directory, the program and its input too");
  for (const std::string& ours : folders.ours)
    if (!ours.empty() && literal_folder(absolute).starts_with(ours + "/"))
      return refusal(glob, fmt::format("takes in Backstay's own files in {}", ours));
  return {};
}

}  // namespace

Result<std::vector<std::string>> absolute_globs(const std::vector<std::string>& globs,
                                                const CaptureFolders& folders) {
  std::vector<std::string> result;
  std::size_t bytes = 0;
  for (const std::string& glob : globs) {
    if (glob.empty()) return refusal(glob, "is empty");
    // The variable that carries the patterns has one on each line.
    if ((glob + folders.working).find('\n') != std::string::npos)
      return refusal(glob, "has a line break, in it or in the name of the working directory");
    std::string absolute = (fs::path(quoted(folders.working)) / glob).lexically_normal().string();
    BACKSTAY_TRY(check(glob, absolute, folders));
    result.push_back(std::move(absolute));
    bytes += result.back().size() + 1;
  }
  if (bytes > globs_bytes_max)
    return Error(Code::too_large,
                 fmt::format("the patterns of --capture-files have {} bytes as absolute paths, and "
                             "the library takes {}; use wider ones",
                             bytes, globs_bytes_max));
  return result;
}

}  // namespace backstay::bin
