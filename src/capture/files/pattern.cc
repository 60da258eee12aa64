#include "capture/files/pattern.h"

namespace backstay::files {
namespace {

// Parts of a text. std::string_view::substr checks its argument, and would bring in what throws.
std::string_view after(std::string_view text, std::size_t count) {
  text.remove_prefix(count);
  return text;
}

std::string_view before(std::string_view text, std::size_t end) {
  return {text.data(), end < text.size() ? end : text.size()};
}

// Whether the set that opens at pattern[0] holds `byte`; `length` is that of the set, 0 where the
// bracket does not close.
bool in_set(std::string_view pattern, char byte, std::size_t& length) {
  std::size_t at = 1;
  const bool inverted = at < pattern.size() && pattern[at] == '!';
  if (inverted) ++at;
  bool found = false;
  for (const std::size_t first = at; at < pattern.size(); ++at) {
    if (pattern[at] == ']' && at > first) {
      length = at + 1;
      return found != inverted && byte != '/';
    }
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      found = found || (pattern[at] <= byte && byte <= pattern[at + 2]);
      at += 2;
    } else {
      found = found || pattern[at] == byte;
    }
  }
  length = 0;
  return false;
}

// Takes one byte of the path by what stands at the head of the pattern, which is no star.
bool take_one(std::string_view& pattern, std::string_view& path) {
  std::size_t length = 1;
  bool fits = false;
  if (pattern[0] == '?') {
    fits = path[0] != '/';
  } else if (pattern[0] == '[') {
    fits = in_set(pattern, path[0], length);
    if (length == 0) {
      length = 1;
      fits = path[0] == '[';
    }
  } else if (pattern[0] == '\\' && pattern.size() > 1) {
    length = 2;
    fits = path[0] == pattern[1];
  } else {
    fits = path[0] == pattern[0];
  }
  pattern.remove_prefix(length);
  path.remove_prefix(1);
  return fits;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      const bool slashes = pattern.size() > 1 && pattern[1] == '*';
      const std::string_view rest = after(pattern, slashes ? 2 : 1);
      for (;; path.remove_prefix(1)) {
        if (matches(rest, path)) return true;
        if (path.empty() || (path[0] == '/' && !slashes)) return false;
      }
    }
    if (path.empty() || !take_one(pattern, path)) return false;
  }
  return path.empty();
}

bool matches_any(std::string_view patterns, std::string_view path) {
  while (!patterns.empty()) {
    const std::size_t end = patterns.find('\n');
    const std::string_view pattern = before(patterns, end);
    if (!pattern.empty() && matches(pattern, path)) return true;
    if (end == std::string_view::npos) break;
    patterns.remove_prefix(end + 1);
  }
  return false;
}

namespace {

bool add_component(std::string_view name, PathText& to) {
  if (name.empty() || name == ".") return true;
  if (name == "..") {
    while (to.bytes > 0 && to.text[--to.bytes] != '/') {
    }
    return true;
  }
  if (to.bytes + 1 + name.size() >= path_max) return false;
  to.text[to.bytes++] = '/';
  for (const char byte : name) to.text[to.bytes++] = byte;
  return true;
}

bool add_components(std::string_view path, PathText& to) {
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    if (!add_component(before(path, end), to)) return false;
    if (end == std::string_view::npos) break;
    path.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace

bool make_absolute(std::string_view folder, std::string_view path, PathText& to) {
  to.bytes = 0;
  if (path.empty()) return false;
  if (path[0] != '/' && !add_components(folder, to)) return false;
  if (!add_components(path, to)) return false;
  if (to.bytes == 0) to.text[to.bytes++] = '/';
  to.text[to.bytes] = '\0';
  return true;
}

}  // namespace backstay::files
