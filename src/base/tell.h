// A line of the library's to the user of a program, on the program's own stderr.
#pragma once

#include <string>
#include <string_view>

namespace backstay {

// How lines to the user begin: those of tell_user(), and those of `backstay run`.
inline constexpr std::string_view line_begin = "backstay: ";
inline constexpr std::string_view run_line_begin = "backstay run: ";

// "backstay: text". The program neither dies nor waits because of it: the line is dropped if the
// reader of stderr has gone or if stderr takes nothing now. Any thread.
void tell_user(const std::string& text);

}  // namespace backstay
