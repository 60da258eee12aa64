// Whether a program that is started here can save. If it cannot, each of its starts fails.
#pragma once

#include <string>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

// Makes the folder of the versions where it is missing. Blocks on the file system. Errors: config,
// permission, no_space, io; each names the folder and what to set.
Status check_storage_here(const Config& config, const std::string& job);

}  // namespace backstay::bin
