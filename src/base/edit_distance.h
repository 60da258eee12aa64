// How far a word is from one that the user may have meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace backstay {

// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. No library of the
// distribution has it for C++.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace backstay
