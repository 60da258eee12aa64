// Notes of an image (docs/format/image.md, "identity"), and one of them: the command line of the
// saved program. A restart goes on with that one, whatever words the user typed now.
#pragma once

#include <string>
#include <vector>

#include "format/object.h"

namespace backstay::image {

inline constexpr std::string_view note_command = "command";
// FullEvery::chain() of the version; absent: 0.
inline constexpr std::string_view note_chain = "chain";

// As a shell takes it, on one line; a long one is shortened in its middle.
std::string command_text(const std::vector<std::string>& words);

// Of an image's notes; "": they hold none.
std::string note_of(const std::vector<format::Note>& notes, std::string_view key);

}  // namespace backstay::image
