// Texts for people that must fit into a line or a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace backstay {

// At most `bytes_max` bytes (16 or more) of a text: its beginning, "..." and its end. Of a failure the end says most, and the
// paths before it are what is long. No character of UTF-8 is divided.
std::string shortened(std::string_view text, std::size_t bytes_max);

}  // namespace backstay
