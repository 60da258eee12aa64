#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dup_filter_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>

#include "base/fd.h"
#include "base/notice.h"

namespace backstay {

// Opening a pipe to write blocks for good if no process reads it.
static Status check_place(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC));
  if (fd.valid() || errno != ENXIO) return {};
  return Error(Code::io,
               "open the log " + path +
                   ": it is a socket, or a pipe that no process reads; set agent.log_file to "
                   "another path");
}

static void log_notice(Weight weight, const std::string& text) {
  switch (weight) {
    case Weight::info: return spdlog::info(text);
    case Weight::warn: return spdlog::warn(text);
    case Weight::error: return spdlog::error(text);
  }
}

Status open_log(const std::string& path, const std::string& level) {
  if (path != "-") BACKSTAY_TRY(check_place(path));
  try {
    spdlog::sink_ptr place;
    if (path == "-") {
      place = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    } else {
      place = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    }
    // A peer that calls an agent's port again and again must not fill the disk with one repeated
    // line.
    constexpr auto at_most_every = std::chrono::minutes(1);
    auto once = std::make_shared<spdlog::sinks::dup_filter_sink_mt>(at_most_every);
    once->add_sink(place);
    auto logger = std::make_shared<spdlog::logger>("backstay", once);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l pid=%P %v");
    logger->set_level(spdlog::level::from_str(level));
    logger->flush_on(spdlog::level::trace);  // a process may be killed at any time
    spdlog::set_default_logger(logger);
    take_notice.store(&log_notice);
  } catch (const std::exception& failure) {
    return Error(Code::io, "open the log " + path + ": " + failure.what());
  }
  return {};
}

}  // namespace backstay
