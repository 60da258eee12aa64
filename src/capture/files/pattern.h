// Which paths are captured: patterns, and paths made absolute. Pure; nothing is allocated.
#pragma once

#include <cstddef>
#include <string_view>

namespace backstay::files {

inline constexpr std::size_t path_max = 4096;

// Whether the whole path fits the pattern: ? stands for one byte, * for any number, neither for a
// slash; ** for any number, slashes among them; [abc], [a-z] and [!a-z] for one byte; \ takes the
// next byte as it is. A set without its end is a bracket.
bool matches(std::string_view pattern, std::string_view path);

// Whether the path fits one of the patterns, which stand on lines of their own; empty lines are
// passed over.
bool matches_any(std::string_view patterns, std::string_view path);

// A path in an array of its own.
struct PathText {
  char text[path_max];
  std::size_t bytes = 0;
  std::string_view view() const { return {text, bytes}; }
};

// Puts `folder` (absolute) and `path` together without "//", "." and ".."; only the text is looked
// at, so a link to a folder stays. False: too long, or empty.
bool make_absolute(std::string_view folder, std::string_view path, PathText& to);

}  // namespace backstay::files
