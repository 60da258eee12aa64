#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <exception>

namespace backstay {

Status open_log(const std::string& path, const std::string& level) {
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
