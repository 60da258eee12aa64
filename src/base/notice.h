// Lines for the log out of code that runs in agents and tools, which have one, and in programs of
// users, which have none: there they go nowhere. Any thread.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

namespace backstay {

enum class Weight { info, warn, error };

// Takes the lines; null: they go nowhere. open_log() sets it (log.h).
inline std::atomic<void (*)(Weight, const std::string&)> take_notice{nullptr};

template <typename... Values>
void notice(Weight weight, fmt::format_string<Values...> text, Values&&... values) {
  if (const auto take = take_notice.load()) {
    take(weight, fmt::format(text, std::forward<Values>(values)...));
  }
}

}  // namespace backstay
