// How deep the keys of a TOML text nest, found without building anything: the TOML library nests a
// table in a table for each part of a dotted key, and takes them down by recursion.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace backstay {

// The line (from 1) of the first key or header with more than `parts_max` dotted parts. Text that
// is not TOML may give any answer: the parser refuses it.
std::optional<std::size_t> line_of_deep_key(std::string_view text, std::size_t parts_max);

}  // namespace backstay
