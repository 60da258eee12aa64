// Starting a program inside of this process, with its own interpreter and libc.
#pragma once

#include "capture/image/boot/options.h"

namespace backstay::image {

// Does not return: the program goes on in its own first instruction.
[[noreturn]] void launch(const Options& options, const Start& start);

}  // namespace backstay::image
