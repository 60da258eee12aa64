// The agent's and the tools' log: spdlog, one line an event, "key=value" pairs after the message.
// The client library does not log; it reports once to stderr through its own session.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/result.h"

namespace backstay {

// Sends the log to `path` ("-" is stderr) at `level` (trace, debug, info, warn, error). A line that
// repeats the one before is left out for a minute; how many were is said with the next one.
Status open_log(const std::string& path, const std::string& level);

}  // namespace backstay
