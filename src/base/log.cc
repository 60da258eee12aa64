#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cerrno>
#include <exception>

#include "base/fd.h"

namespace backstay {

// Who opens a pipe to write, and nobody reads, waits for ever.
static Status check_place(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC));
  if (fd.valid() || errno != ENXIO) return {};
  return Error(Code::io, "open the log " + path +
                             ": it is a socket, or a pipe that nobody reads; set agent.log_file to "
                             "another path");
}

Status open_log(const std::string& path, const std::string& level) {
  if (path != "-") BACKSTAY_TRY(check_place(path));
  try {
    auto logger = path == "-" ? spdlog::stderr_color_mt("backstay")
                              : spdlog::basic_logger_mt("backstay", path);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l pid=%P %v");
    logger->set_level(spdlog::level::from_str(level));
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(logger);
  } catch (const std::exception& failure) {
    return Error(Code::io, "open the log " + path + ": " + failure.what());
  }
  return {};
}

}  // namespace backstay
