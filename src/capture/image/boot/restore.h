// Bringing a saved program back in a new process.
#pragma once

#include "capture/image/boot/options.h"

namespace backstay::image {

// Does not return. Everything that can be refused is refused before anything is changed.
[[noreturn]] void restore(const Options& options, const Start& start);

}  // namespace backstay::image
