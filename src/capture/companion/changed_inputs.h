// Files that a saved program reads and that were changed since then: it goes on with what they hold
// now, so its results may be neither those of the old content nor of the new.
#pragma once

#include <string>
#include <vector>

#include "capture/image/format/image.h"

namespace backstay::image {

// The paths of files that the program has open, or mapped shared, for reading alone, and that are
// newer than the image. Of files that it writes too, nothing can be told by the time. Blocks on
// files.
std::vector<std::string> changed_inputs(const Image& image);

}  // namespace backstay::image
