// A line of the library's to the user of a program, on the program's own stderr.
#pragma once

#include <string>

namespace backstay {

// "backstay: text". The program neither dies nor waits because of it: where nobody reads stderr any more, or it takes
// nothing now, the line is lost. Any thread.
void tell_user(const std::string& text);

}  // namespace backstay
