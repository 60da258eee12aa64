// What Backstay has said in the program's output file since a version (`> log 2>&1`). A restart
// cuts that file back to the length that it had then, as the program prints the rest again;
// Backstay's lines are written once more behind the cut.
#pragma once

#include <string>

#include "capture/image/format/layout.h"

namespace backstay::image {

// Whether this descriptor of an image was the standard output of Backstay's process.
bool is_output(const Descriptor& one);

// The lines behind the length that `output`, such a descriptor, says. None where standard output
// and error are not one file now, or not that file. A line that began behind an unfinished one of
// the program's is none.
std::string said_since(const Descriptor& output);

// After the file was cut back; if it was not, nothing is written.
void say_again(const Descriptor& output, const std::string& lines);

}  // namespace backstay::image
