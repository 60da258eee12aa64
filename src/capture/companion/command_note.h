// The command line of a saved program, as a note of its image (docs/format/image.md, "Notes"): a
// restart goes on with that one, whatever words the user typed now.
#pragma once

#include <string>
#include <vector>

#include "format/object.h"

namespace backstay::image {

inline constexpr std::string_view note_command = "command";

// As a shell takes it, on one line; a long one is shortened in its middle.
std::string command_text(const std::vector<std::string>& words);

// Of an image's notes; "": they hold none.
std::string command_of(const std::vector<format::Note>& notes);

}  // namespace backstay::image
