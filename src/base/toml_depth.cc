#include "base/toml_depth.h"

namespace backstay {

namespace {

// A text over several lines may end in quotes of its own, before the three.
std::size_t after_quotes(std::string_view text, std::size_t at, char quote, std::size_t most) {
  for (; most > 0 && at < text.size() && text[at] == quote; --most) ++at;
  return at;
}

// One past the end of the string that begins at `at`: 'text', "text", '''text''' or """text""".
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string_view three = text.substr(at, 3);
  const bool many_lines = three.size() == 3 && three[1] == quote && three[2] == quote;
  const std::size_t length = many_lines ? 3 : 1;
  for (std::size_t i = at + length; i < text.size(); ++i) {
    if (text[i] == '\n' && !many_lines) return i;  // never closed
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text.substr(i, length) == text.substr(at, length)) {
      return after_quotes(text, i + length, quote, many_lines ? 2 : 0);
    }
  }
  return text.size();
}

// No dotted key goes on over these.
bool ends_key(char c) {
  constexpr std::string_view ends = "\n=,[]{}";
  return ends.find(c) != std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> line_of_deep_key(std::string_view text, std::size_t parts_max) {
  std::size_t line = 1;
  std::size_t parts = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t next = at + 1;
    if (c == '"' || c == '\'') next = end_of_string(text, at);
    if (c == '#') next = text.find('\n', at);
    if (c == '.' && ++parts > parts_max) return line;
    if (ends_key(c)) parts = 1;
    next = next < text.size() ? next : text.size();
    for (const char passed : text.substr(at, next - at)) line += passed == '\n' ? 1 : 0;
    at = next;
  }
  return std::nullopt;
}

}  // namespace backstay
