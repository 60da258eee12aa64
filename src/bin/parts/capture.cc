#include "bin/parts/capture.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <sstream>

#include "base/program.h"
#include "bin/parts/capture_globs.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

constexpr const char* library_name = "libbackstay_files.so";
// From the folder of `backstay`: the build tree, one folder for all, an installation.
constexpr std::array library_folders = {"../capture/files", ".", "../" BACKSTAY_LIBDIR};

}  // namespace

void add_capture_options(CLI::App& app, CaptureOptions& options, const std::string& more) {
  app.add_option("--capture-files", options.globs,
                 "Capture the files that the program writes and whose path this pattern matches; "
                 "quote it. May be given several times" +
                     more)
      ->type_name("GLOB")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->group("Captured files");
}

Result<std::vector<std::string>> checked_globs(const CaptureOptions& options,
                                               const Config& config) {
  if (!options.any()) return std::vector<std::string>{};
  std::error_code failure;
  const std::string working = fs::current_path(failure).string();
  if (failure) return Error(Code::io, "the working directory has gone: " + failure.message());
  return absolute_globs(options.globs, {working, {config.storage.dir, config.durable.dir}});
}

Result<std::string> find_capture_library() {
  const fs::path folder = program_folder();
  std::string looked;
  for (const char* step : library_folders) {
    const std::string path = (folder / step / library_name).lexically_normal().string();
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) {
      looked += fmt::format("{}{}", looked.empty() ? "" : ", ", path);
      continue;
    }
    if (path.find_first_of(": \t\n") == std::string::npos) return path;
    return Error(Code::unsupported,
                 fmt::format("the library that captures files lies at \"{}\", and LD_PRELOAD takes "
                             "no path with blanks or colons: install Backstay elsewhere",
                             path));
  }
  return Error(Code::unsupported,
               fmt::format("{}, the library that captures files, is missing. It was looked for as "
                           "{}. Build it (make build), or install Backstay again",
                           library_name, looked));
}

std::string with_library(const std::string& own, const std::string& library) {
  std::string list = own;
  for (char& c : list)
    if (c == ' ') c = ':';
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ':');)
    if (entry == library) return own;
  return own.empty() ? library : own + ":" + library;
}

std::vector<std::string> words_of_exec(const CaptureOptions& options, const std::string& job) {
  std::vector<std::string> words{program_folder() + "/backstay", "exec"};
  for (const std::string& glob : options.globs) words.push_back("--capture-files=" + glob);
  if (!job.empty()) words.push_back("--job=" + job);
  words.emplace_back("--");
  return words;
}

}  // namespace backstay::bin
