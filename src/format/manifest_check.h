// What must hold of a manifest, checked by its writer and its reader alike: what we write we can
// read. Private to src/format.
#pragma once

#include <string>

#include "format/manifest.h"

namespace backstay::format {

// Empty: nothing is wrong.
std::string wrong_with(const Manifest& manifest);

}  // namespace backstay::format
