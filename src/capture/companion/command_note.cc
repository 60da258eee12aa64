#include "capture/companion/command_note.h"

#include <algorithm>

#include "base/shorten.h"

namespace backstay::image {
namespace {

// All notes of an image together have 1023 bytes.
constexpr std::size_t command_bytes_max = 500;

bool is_plain(char c) {
  constexpr std::string_view marks = "%+,-./:=@_";
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || marks.find(c) != std::string_view::npos;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += static_cast<unsigned char>(c) < ' ' ? '?' : c;  // a note is one line
    }
  }
  return text + "'";
}

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return shortened(text, command_bytes_max);
}

std::string note_of(const std::vector<format::Note>& notes, std::string_view key) {
  const auto found = std::find_if(notes.begin(), notes.end(),
                                  [key](const format::Note& note) { return note.key == key; });
  return found == notes.end() ? "" : found->text;
}

}  // namespace backstay::image
