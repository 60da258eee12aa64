// Whether programs can be saved on this machine: `backstay doctor` asks.
#pragma once

#include "base/result.h"

namespace backstay::image {

// Saves a small program here, and forgets it.
Status check_saving();

}  // namespace backstay::image
