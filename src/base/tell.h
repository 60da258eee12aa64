// A line of the library's to the user of a program, on the program's own stderr.
#pragma once

#include <string>

namespace backstay {

// "backstay: text". The program neither dies nor waits because of it: the line is dropped if the
// reader of stderr has gone or if stderr takes nothing now. Any thread.
void tell_user(const std::string& text);

}  // namespace backstay
