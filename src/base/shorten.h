// Texts for people that must fit into a line or a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace backstay {

// At most `bytes_max` bytes (16 or more) of a text: its beginning, "..." and its end. The end of a
// failure's text says most, and the paths before it are long. No character of UTF-8 is divided.
std::string shortened(std::string_view text, std::size_t bytes_max);

}  // namespace backstay
